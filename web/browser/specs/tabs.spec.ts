// More than one tab, and one that nobody looks at.
// clause: C20
import type { Page } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";

test("c20 two tabs of one run show the same, also the one that nobody looks at", async ({ yard, context, page }) => {
  const id = await yard.start("bursts");
  await yard.api.until(id, "running");
  const [seen, hidden] = [await RunPage.open(page, id), await RunPage.open(await context.newPage(), id)];
  await turn(hidden.page, "hidden");
  for (const [word, events] of [["begin", 800], ["and on", 1600]] as const) {
    await yard.api.steer(id, word);
    await expect.poll(() => seen.lastSequence()).toBeGreaterThan(events);
  }
  await yard.api.steer(id, "and end");
  await seen.shows("completed");
  await turn(hidden.page, "visible");
  await hidden.shows("completed");
  expect(await hidden.lastSequence()).toBe(await seen.lastSequence());
});

test("c20 a tab that nobody looks at says in its title that a person is needed", async ({ yard, page }) => {
  await page.goto("/runs");
  const before = Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0);
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  await expect.poll(async () => Number(/^\((\d+)\)/.exec(await page.title())?.[1] ?? 0)).toBeGreaterThan(before);
  await yard.api.through(id);
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
