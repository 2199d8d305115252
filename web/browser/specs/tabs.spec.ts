// More than one tab, and one that nobody looks at.
// clause: C20
import type { Page, Request } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { untilQuiet } from "../support/timeline.ts";

/** Longer than a tab that nobody looks at keeps its streams, and than it waits before it asks. */
const LATER_MS = 60_000;

test("c20 two tabs of one run show the same, also the one that nobody looks at", async ({ yard, context, page }) => {
  const id = await yard.start("bursts");
  await yard.api.until(id, "running");
  const [seen, hidden] = [await RunPage.open(page, id), await RunPage.open(await context.newPage(), id)];
  await turn(hidden.page, "hidden");
  for (const [word, before] of [["begin", 0], ["and on", 800]] as const) {
    await yard.api.steer(id, word);
    // A word into a part that still goes on would be heard there.
    await untilQuiet(yard, seen, before + 800);
  }
  await yard.api.steer(id, "and end");
  await seen.shows("completed");
  await turn(hidden.page, "visible");
  await hidden.shows("completed");
  expect(await hidden.lastSequence()).toBe(await seen.lastSequence());
});

test("c20 a tab that nobody looks at keeps no stream, and says in its title that a person is needed", async ({ yard, page }) => {
  await yard.start("waits");
  // Its time is moved on, so that nobody waits until it asks by itself.
  await page.clock.install();
  await page.goto("/runs");
  await expect(page.getByRole("table")).toBeVisible();
  const waiting = async (): Promise<number> => Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0);
  const open = (await yard.api.get<{ approvals: unknown[] }>("/approvals")).approvals.length;
  await expect.poll(waiting).toBe(open);
  const closed = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/api/v1/stream"));
  const asked = new Set<Request>();
  page.on("request", (request) => asked.add(request));
  page.on("requestfinished", (request) => asked.delete(request));
  page.on("requestfailed", (request) => asked.delete(request));
  await turn(page, "hidden");
  await page.clock.fastForward(LATER_MS);
  await closed;
  // What it asks when its streams end is answered before there is anything new.
  await expect.poll(() => asked.size).toBe(0);
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  expect(await waiting(), "nobody tells it").toBe(open);
  await page.clock.fastForward(LATER_MS);
  await expect.poll(waiting).toBe(open + 1);
  await yard.api.through(id);
  await page.clock.fastForward(LATER_MS);
  await expect.poll(waiting).toBe(open);
});

// A browser has six connections to a host for all its tabs, and each tab of a run keeps two open while somebody looks at it.
test("c20 a tab is usable however many others are open behind it", async ({ yard, context, page }) => {
  const id = await yard.start("waits");
  await yard.api.until(id, "running");
  const behind = [page, ...(await Promise.all(Array.from({ length: 4 }, () => context.newPage())))];
  for (const tab of behind) {
    const run = await RunPage.open(tab, id);
    await run.shows("running");
    await turn(tab, "hidden");
  }
  const last = await RunPage.open(await context.newPage(), id);
  await last.shows("running");
  await yard.api.steer(id, "go on");
  await last.shows("completed");
});

/** As the browser tells a page that another tab is in front of it, or no longer. */
function turn(page: Page, state: "hidden" | "visible"): Promise<void> {
  return page.evaluate((now) => {
    Object.defineProperty(document, "visibilityState", { value: now, configurable: true });
    Object.defineProperty(document, "hidden", { value: now === "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}
