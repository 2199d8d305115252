// The page claims nothing without the events for it.
// clause: C08
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

test("c08 a jump from created to completed is shown as degraded, with its reason", async ({ yard, page, wire }) => {
  const id = await yard.start("short");
  await yard.api.until(id, "completed");
  // What no hub sends: the run's end as its second event.
  wire.rewrite(id, (event) => {
    if (event.type === "run.created") return event;
    return event.type === "run.completed" ? { ...event, sequence: 2 } : undefined;
  });
  wire.claim(id, 2);
  const run = await RunPage.open(page, id, { base: wire.url });
  await expect(run.head).toContainText("Degraded");
  await run.shows("created");
  await expect(page.getByRole("main")).toContainText(/run\.completed/);
});

test("c08 what was not read to its end is not shown as the present", async ({ yard, page, wire }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  wire.holdAt(id, 3);
  const run = await RunPage.open(page, id, { base: wire.url });
  const { length } = await yard.api.events(id);
  await expect(run.head).toContainText(words("run.readingOf", { at: 3, of: length }));
  await expect(run.pill).toHaveAttribute("data-state", "unknown");
  await expect(run.panel().getByRole("button", { name: /^Run shell/ })).toHaveCount(0);
});

test("c08 events that cannot be had are shown as missing, not passed over", async ({ yard, page, wire }) => {
  const id = await yard.start("story");
  await yard.api.through(id);
  wire.rewrite(id, (event) => (event.sequence >= 8 && event.sequence <= 10 ? undefined : event));
  const run = await RunPage.open(page, id, { base: wire.url, part: "#seq=7" });
  await expect(run.feed).toContainText(/missing/i);
});

test("c08 an event of a type that the page does not know is a row of its own", async ({ yard, page, wire }) => {
  const id = await yard.start("story");
  await yard.api.through(id);
  const events = await yard.api.events(id);
  const read = events.find((event) => event.type === "run.file.read");
  if (read === undefined) throw new Error("the story reads a file");
  wire.rewrite(id, (event) => (event.sequence === read.sequence ? { ...event, type: "run.from.the.future" } : event));
  const run = await RunPage.open(page, id, { base: wire.url, part: `#seq=${read.sequence}` });
  await expect(run.feed).toContainText("run.from.the.future");
});
