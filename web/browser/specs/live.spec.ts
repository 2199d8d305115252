// A run that says hundreds of things a second: every event is shown once and in order, and nothing that a reader looks at moves.
// clause: C08
// clause: C20
import type { Pace } from "../support/pace.ts";
import { EVENTS } from "../support/proxy.ts";
import { RunPage } from "../support/run-page.ts";
import { follow, seenMoving, watchStillness } from "../support/stillness.ts";
import { disorder, untilQuiet, whole } from "../support/timeline.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";
import type { Yard } from "../support/yard.ts";

/** What a browser calls good is 0.1. */
const SHIFT_MAX = 0.01;

/** The hub records more than this; so many of them a second come through the wire. */
const EVENTS_A_SECOND = 500;
/** So many wait on the wire before the first comes through, so that the speed never depends on the hub. */
const WAITING = 2_900;

/** What the agent says by itself, and how often: until then it listens to nobody. */
const SAID = { text: "On and on it goes.", times: 1_500 };

/** Ends the run once the agent has said it all. */
async function toEnd({ api }: Yard, id: string): Promise<void> {
  const said = async (): Promise<number> => (await api.events(id)).filter(({ type, payload }) => type === "run.message.completed" && payload["text"] === SAID.text).length;
  await expect.poll(said, { timeout: 120_000 }).toBe(SAID.times);
  await api.steer(id, "and end");
}

/** How many events what was let through was off the schedule at worst, as long as enough waited. */
function offSchedule({ slices, eventsASecond }: Pace): number {
  let [sum, worst] = [0, 0];
  for (const { ms, events } of slices) {
    sum += events;
    if (sum > WAITING) break;
    worst = Math.max(worst, Math.abs(sum - (ms / 1000) * eventsASecond));
  }
  return worst;
}

/** In the page as it is, which has only heard the events: each of them is there once. */
async function hasAll(run: RunPage, count: number): Promise<void> {
  await run.view("json");
  expect(await whole(run)).toBe(`1-${count}`);
}

test("c20 a live tail of 500 events a second loses none, doubles none and shifts nothing", async ({ yard, page, wire }) => {
  const id = await yard.start("live");
  await yard.api.until(id, "running");
  const pace = wire.pace(id, EVENTS_A_SECOND);
  await watchStillness(page);
  const run = await RunPage.open(page, id, { base: wire.url });
  await expect(run.link).toHaveAttribute("data-link", "live");
  await expect(run.rows.first()).toBeVisible();
  await follow(page, "main header .slot");
  const first = await run.lastSequence();
  pace.hold();
  await yard.api.steer(id, "begin");
  await expect.poll(() => pace.waiting, { timeout: 120_000 }).toBeGreaterThanOrEqual(WAITING);
  pace.release();
  while ((await run.lastSequence()) < first + WAITING) {
    await run.shows("running");
    expect(await disorder(run)).toEqual([]);
  }
  expect(pace.slices.reduce((sum, { events }) => sum + events, 0), "so many came through at that speed").toBeGreaterThanOrEqual(WAITING);
  expect(offSchedule(pace), "every slice was let through when it was due").toBeLessThanOrEqual(1);
  await expect(run.rows.last()).toBeInViewport();
  await toEnd(yard, id);
  await run.shows("completed");
  const events = await yard.api.events(id);
  await run.showsLast(events.at(-1) ?? { sequence: 0, timestamp: "" });
  const { shift, sources, places } = await seenMoving(page);
  expect(places, "the state stands where it stood").toHaveLength(1);
  expect(shift, sources.join("\n")).toBeLessThan(SHIFT_MAX);
  await hasAll(run, events.length);
  expect([wire.streams(id), wire.asked.get(EVENTS)], "one stream brought all of it, and nothing was asked for again").toEqual([1, undefined]);
});

test("c20 a run that talks as fast as the hub records it is shown as it talks", async ({ yard, page }) => {
  const id = await yard.start("live");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await expect(run.rows.first()).toBeVisible();
  await yard.api.steer(id, "begin");
  while ((await run.lastSequence()) < WAITING) expect(await disorder(run)).toEqual([]);
  await toEnd(yard, id);
  await run.shows("completed");
  const events = await yard.api.events(id);
  await run.showsLast(events.at(-1) ?? { sequence: 0, timestamp: "" });
  await hasAll(run, events.length);
  const stored = await RunPage.open(page, id, { part: "?view=json" });
  await stored.shows("completed");
  expect(await whole(stored)).toBe(`1-${events.length}`);
});

test("c20 who scrolls up is left alone, and End follows again", async ({ yard, page }) => {
  const id = await yard.start("bursts");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await yard.api.steer(id, "begin");
  const read = await untilQuiet(yard, run, 800);
  await run.rows.last().hover();
  await page.mouse.wheel(0, -2500);
  await expect(page.getByRole("button", { name: words("run.toEnd") })).toBeVisible();
  const place = () => run.rows.first().evaluate((row) => `${row.textContent} ${row.getBoundingClientRect().y}`);
  await expect.poll(async () => (await place()) === (await place())).toBe(true);
  const before = await place();
  await yard.api.steer(id, "and on");
  const now = await untilQuiet(yard, run, 1600);
  expect(await place()).toBe(before);
  await expect(page.getByRole("button", { name: words("run.newMany", { count: now - read }) })).toBeVisible();
  await page.keyboard.press("End");
  await expect(page.getByText(words("run.following"))).toBeVisible();
  await expect(run.rows.last()).toBeInViewport();
  await yard.api.steer(id, "and end");
  await run.shows("completed");
  await expect(run.rows.last()).toBeInViewport();
});
