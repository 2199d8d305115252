// Each of the ten states is shown as icon and word, with the time and number of the last event.
// clause: C08
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/api.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import type { Yard } from "../support/yard.ts";

/** Brings a run into a state in which it stays. */
const HELD: Record<string, (yard: Yard) => Promise<string>> = {
  planned: async (yard) => {
    const first = await yard.start("one-at-a-time");
    await yard.api.until(first, "running");
    return yard.start("one-at-a-time");
  },
  preparing: async (yard) => {
    const setup = '[workspace]\nsetup = [["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]]\n';
    const place = await yard.place("slow", { "runyard.toml": setup });
    await yard.hub.commandIn(place, "trust", "--confirm");
    return yard.start("short", "Look around", { workspace: place });
  },
  running: (yard) => yard.start("waits"),
  needs_approval: (yard) => yard.start("asks-shell"),
  completed: (yard) => yard.start("short"),
  failed: (yard) => yard.start("fails-backend-failed"),
  cancelled: async (yard) => {
    const run = await yard.start("waits");
    await yard.api.until(run, "running");
    await yard.api.post(`/runs/${run}/cancel`);
    return run;
  },
};

for (const [state, hold] of Object.entries(HELD)) {
  test(`c08 a run that is ${state} says so, with its last event`, async ({ yard, page }) => {
    const id = await hold(yard);
    await yard.api.until(id, state);
    const run = await RunPage.open(page, id);
    await run.shows(state);
    const last = (await settled(yard, id)).at(-1);
    if (last === undefined) throw new Error("a run has events");
    await run.showsLast(last);
    await page.goto("/runs");
    const row = page.getByRole("row").filter({ has: page.locator(`a[href*="${id}"]`) });
    await expect(row.locator(`[data-state="${state}"]`)).toBeVisible();
    if (state === "preparing") await writeFile(join(yard.hub.home, "edge/runs", id, "checkout/go"), "");
  });
}

/** The events of a run when nothing more comes by itself. */
async function settled(yard: Yard, id: string) {
  let before = -1;
  return eventually(`${id} is quiet`, async () => {
    const events = await yard.api.events(id);
    if (events.length === before) return events;
    before = events.length;
    return undefined;
  });
}

// These pass too quickly to be looked at: the run is real, and what comes after is held back on its way to the page.
for (const [state, type] of [["created", "run.created"], ["accepted", "run.accepted"], ["applying", "run.applying"]] as const) {
  test(`c08 a run that was last seen as ${state} says so, with its last event`, async ({ yard, page, wire }) => {
    const id = await yard.start("edits", "Count begun metres whole", { workspace: await yard.repository() });
    await yard.api.through(id);
    const event = (await yard.api.events(id)).find((each) => each.type === type);
    if (event === undefined) throw new Error(`no ${type}`);
    wire.holdAt(id, event.sequence);
    wire.claim(id, event.sequence);
    const run = await RunPage.open(page, id, { base: wire.url });
    await run.shows(state);
    await run.showsLast(event);
  });
}

test("c08 a run that cannot be relied on keeps its state and says why", async ({ yard, page }) => {
  const id = await yard.start("degraded");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await run.shows("running");
  await expect(run.page.getByRole("main")).toContainText("The agent's own log was cut.");
  await yard.api.steer(id, "go on");
  await run.shows("completed");
  await expect(run.head).toContainText("Degraded");
});
