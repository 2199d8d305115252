// A run of fifty thousand events, followed from its first to its last, stays small in the browser.
// clause: C20
import { contextOf, logIn } from "../support/session.ts";
import { Yard } from "../support/yard.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";

const NODES_MAX = 400;
const PAGE_NODES_MAX = 1_000;
const HEAP_BYTES_MAX = 150 * 1024 * 1024;

test("c20 fifty thousand events stay within bounds of nodes and memory, live and replayed", async ({ browser }) => {
  test.setTimeout(600_000);
  const yard = await Yard.start({ inMemory: true });
  const context = await contextOf(browser, await logIn(await yard.link()), { locale: "en-GB", baseURL: yard.hub.url });
  const page = await context.newPage();
  const id = await yard.startLong("fifty-thousand");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await expect(run.pill).toHaveAttribute("data-state", "completed", { timeout: 500_000 });
  const last = await run.lastSequence();
  expect(last).toBeGreaterThan(50_000);
  await small(run);
  await page.reload();
  await run.shows("completed");
  await expect.poll(() => run.lastSequence(), { timeout: 120_000 }).toBe(last);
  await small(run);
  await run.go("?view=json#seq=25000");
  const row = run.feed.locator('[data-seq="25000"]');
  await expect(row).toBeInViewport({ timeout: 120_000 });
  await expect(row).toHaveAttribute("aria-current", "true");
  await small(run);
  await context.close();
  await yard.hub.remove();

  async function small(shown: RunPage): Promise<void> {
    expect(await shown.feed.locator("*").count(), "nodes of the feed").toBeLessThan(NODES_MAX);
    const nodes = await page.locator("*").count();
    test.info().annotations.push({ type: "nodes", description: String(nodes) });
    expect(nodes, "nodes of the whole page").toBeLessThan(PAGE_NODES_MAX);
    const cdp = await context.newCDPSession(page);
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    await cdp.detach();
    test.info().annotations.push({ type: "heap", description: `${(usedSize / 1024 / 1024).toFixed(0)} MiB` });
    expect(usedSize).toBeLessThan(HEAP_BYTES_MAX);
  }
});
