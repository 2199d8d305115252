// A run that says hundreds of things a second: every event is shown once and in order, and nothing that a reader looks at moves.
// clause: C08
// clause: C20
import { RunPage } from "../support/run-page.ts";
import { follow, seenMoving, watchStillness } from "../support/stillness.ts";
import { disorder, whole } from "../support/timeline.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

/** What a browser calls good is 0.1. */
const SHIFT_MAX = 0.01;

test("c20 a live tail of thousands of events loses none, doubles none and shifts nothing", async ({ yard, page }) => {
  const id = await yard.start("live");
  await yard.api.until(id, "running");
  await watchStillness(page);
  const run = await RunPage.open(page, id);
  await expect(run.rows.first()).toBeVisible();
  await follow(page, "main header .slot");
  await yard.api.steer(id, "begin");
  while ((await run.lastSequence()) < 3000) expect(await disorder(run)).toEqual([]);
  await expect(run.rows.last()).toBeInViewport();
  await yard.api.steer(id, "and end");
  await run.shows("completed");
  const events = await yard.api.events(id);
  await run.showsLast(events.at(-1) ?? { sequence: 0, timestamp: "" });
  const { shift, sources, places } = await seenMoving(page);
  expect(places, "the state stands where it stood").toHaveLength(1);
  expect(shift, sources.join("\n")).toBeLessThan(SHIFT_MAX);
  const started = events.find((event) => event.type === "run.started");
  const seconds = (Date.parse(events.at(-1)?.timestamp ?? "") - Date.parse(started?.timestamp ?? "")) / 1000;
  test.info().annotations.push({ type: "events a second", description: (events.length / seconds).toFixed(0) });
  await run.go("?view=json");
  expect(await whole(run)).toBe(`1-${events.length}`);
});

test("c20 who scrolls up is left alone, and End follows again", async ({ yard, page }) => {
  const id = await yard.start("bursts");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await yard.api.steer(id, "begin");
  await expect.poll(() => run.lastSequence()).toBeGreaterThan(800);
  await run.rows.last().hover();
  await page.mouse.wheel(0, -2500);
  await expect(page.getByRole("button", { name: words("run.toEnd") })).toBeVisible();
  const place = () => run.rows.first().evaluate((row) => `${row.textContent} ${row.getBoundingClientRect().y}`);
  await expect.poll(async () => (await place()) === (await place())).toBe(true);
  const before = await place();
  await yard.api.steer(id, "and on");
  await expect.poll(() => run.lastSequence()).toBeGreaterThan(1600);
  expect(await place()).toBe(before);
  await page.keyboard.press("End");
  await expect(page.getByText(words("run.following"))).toBeVisible();
  await expect(run.rows.last()).toBeInViewport();
  await yard.api.steer(id, "and end");
  await run.shows("completed");
  await expect(run.rows.last()).toBeInViewport();
});
