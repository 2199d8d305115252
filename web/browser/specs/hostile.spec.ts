// What an agent says is text: it is never markup, never a request, and what is hidden in it is spelled out.
// clause: C23
// clause: C24
import { everything } from "../support/everything.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

test("c24 what an agent writes stays text", async ({ yard, page }) => {
  const id = await yard.start("hostile");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await expect(run.feed).toContainText("hidden:");
  expect(await page.locator("#evil").count()).toBe(0);
  expect(await page.evaluate(() => "evil" in window)).toBe(false);
  expect(await run.feed.locator("img").count(), "no picture of another host is asked for").toBe(0);
  expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
  const link = page.getByRole("link", { name: /harmless/ }).first();
  await expect(link).toHaveAttribute("rel", /noopener/);
  await expect(page.getByRole("main")).toContainText("evil.example");
  await expect(run.panel()).toContainText("U+202E");
  for (const [part, drawn] of [
    ["/transcript", page.getByRole("region", { name: words("run.tab.transcript") }).getByText("<script>window.evil = 2</script>").first()],
    ["?view=full", run.feed.getByText("<script>window.evil = 2</script>").first()],
    ["?view=json", run.rows.filter({ hasText: "run.approval.requested" })],
  ] as const) {
    await run.go(part);
    await expect(drawn).toBeVisible();
    expect(await page.locator("#evil").count()).toBe(0);
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.evaluate(() => "evil" in window)).toBe(false);
  }
  await yard.api.through(id);
});

test("c14 an artifact that is a page is shown in a frame that can do nothing", async ({ yard, page, watch }) => {
  // The frame's own script and style are what it refuses.
  watch.expect(/blob:http/);
  const { story, artifact } = await everything(yard);
  await page.addInitScript(() => addEventListener("message", () => Object.assign(window, { escaped: true })));
  await page.goto(`/runs/${story}/artifacts/${artifact}`);
  const frame = page.locator("iframe");
  await expect(frame).toHaveAttribute("sandbox", "");
  await expect(frame.contentFrame().getByRole("heading", { name: "Berths" })).toBeVisible();
  expect(await page.evaluate(() => "escaped" in window)).toBe(false);
});
