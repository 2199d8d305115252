// What else a run's page does: speaking to the agent, ending a run, and the way to what is left of it.
// clause: C08
// clause: C14
// clause: C20
import { everything } from "../support/everything.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

test("c08 a person speaks into a turn, and sees that the agent heard it", async ({ yard, page }) => {
  const id = await yard.start("waits");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await page.getByRole("button", { name: words("run.messageAgent") }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: words("run.messageText") }).fill("Look at berth B1, too.");
  await dialog.getByRole("button", { name: words("run.sendSteer") }).click();
  await run.shows("completed");
  await expect(run.feed).toContainText("I heard you: Look at berth B1, too.");
});

test("c08 cancelling asks first, says what it means, and keeps the reason", async ({ yard, page }) => {
  const id = await yard.start("waits");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id);
  await page.getByRole("button", { name: words("run.cancelRun") }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(words("run.cancelMeans"));
  await dialog.getByRole("button", { name: words("run.keepRunning") }).click();
  expect((await yard.api.run(id)).state).toBe("running");
  await page.getByRole("button", { name: words("run.cancelRun") }).click();
  await dialog.getByRole("textbox", { name: words("run.cancelReason") }).fill("The tide was wrong.");
  await dialog.getByRole("button", { name: words("run.effect.cancel") }).click();
  await run.shows("cancelled");
  await expect(page.getByRole("main")).toContainText("The tide was wrong.");
});

test("c14 a run that is over leads to its diff, artifacts, transcript and audit, and says what there is none of", async ({ yard, page }) => {
  const { story } = await everything(yard);
  const run = await RunPage.open(page, story);
  const left = page.getByRole("list", { name: words("run.whatIsLeft") });
  for (const [name, shown] of [
    [/^Diff/, "src/booking.js"],
    [/artifacts$/, "berths.html"],
    [/^Transcript$/, "All seven cases pass."],
    [/^Audit$/, words("audit.tab.decisions")],
  ] as const) {
    await run.go();
    await left.getByRole("link", { name }).click();
    await expect(page.getByRole("main").getByText(shown).first()).toBeVisible();
  }
  // The list, the tab and the card agree about how many there are, the run's own diff and patch among them.
  await run.go("/artifacts");
  const listed = page.getByRole("navigation", { name: words("artifacts.list") }).getByRole("listitem");
  await expect(listed.first()).toBeVisible();
  const count = await listed.count();
  expect(count).toBeGreaterThan(2);
  await expect(run.tab("Artifacts")).toHaveText(`Artifacts${count}`);
  await run.go();
  await expect(left.getByRole("link", { name: words("run.artifactMany", { count }) })).toBeVisible();
  const short = await yard.start("short");
  await yard.api.until(short, "completed");
  await RunPage.open(page, short);
  await expect(left).toContainText(words("run.noArtifacts"));
});

test("c23 the audit is verified in the page", async ({ yard, page }) => {
  await everything(yard);
  await page.goto("/audit");
  await page.getByRole("button", { name: words("audit.verify") }).click();
  await expect(page.getByRole("main")).toContainText(/The chain is whole: \d+ entries verified/);
});

test("c20 a notification comes when a person is needed, and never for progress", async ({ yard, page }) => {
  await page.addInitScript(() => {
    const shown: string[] = [];
    class Stub {
      static permission = "granted";
      static requestPermission = (): Promise<string> => Promise.resolve("granted");
      onclick: unknown = null;
      constructor(title: string, { body }: { body: string }) {
        shown.push(`${title} ${body}`);
      }
    }
    Object.assign(window, { Notification: Stub, __shown: shown });
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    Object.defineProperty(document, "hasFocus", { value: () => false, configurable: true });
  });
  const shown = () => page.evaluate(() => (window as unknown as { __shown: string[] }).__shown);
  await page.goto("/settings");
  await page.getByRole("checkbox", { name: words("common.settings.notify") }).check({ force: true });
  await page.goto("/runs");
  await expect(page.getByRole("table").first()).toBeVisible();
  const busy = await yard.start("short", "Only progress");
  await yard.api.until(busy, "completed");
  await expect(page.locator(`[data-run="${busy}"]`)).toHaveAttribute("data-state", "completed");
  expect(await shown()).toEqual([]);
  const asks = await yard.start("asks-shell");
  await yard.api.asked(asks);
  await expect.poll(shown).toEqual([expect.stringContaining(words("common.notice.title"))]);
  await yard.api.through(asks);
});
