// A decision is about what was seen: a second click finds nothing to press, no content is pushed out of sight, and no rule is stored
// that was not looked at.
// clause: C12
// clause: C24
import type { Locator, Page } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

/** Clicks where it is now, whether or not it can be pressed. */
async function clickAt(page: Page, target: Locator): Promise<void> {
  const box = await target.boundingBox();
  if (box === null) throw new Error("it is on the screen");
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
}

const effect = (run: RunPage, name: RegExp) => run.panel().getByRole("button", { name });

test("c12 the second of two clicks does not approve what comes under the pointer", async ({ yard, page }) => {
  const id = await yard.start("asks-twice");
  const first = await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await expect(effect(run, /echo first/)).toBeEnabled();
  await clickAt(page, effect(run, /echo first/));
  const second = effect(run, /echo second/);
  await second.waitFor();
  await clickAt(page, second);
  await clickAt(page, second);
  await expect(second, "it says why").toHaveAccessibleDescription(words("common.justAppeared"));
  expect((await yard.api.open(id)).map((approval) => approval.id)).toEqual([(await yard.api.asked(id, first.id)).id]);
  await second.click();
  await run.shows("completed");
});

for (const width of [360, 1440]) {
  test(`c24 the end of a command stands before the button that runs it, at ${width} pixels`, async ({ yard, page }) => {
    await page.setViewportSize({ width, height: 720 });
    const id = await yard.start("pushes");
    const blank = await yard.api.asked(id);
    const run = await RunPage.open(page, id);
    const shown = run.panel().locator(".exact pre");
    await expect(shown).toContainText("echo harmless⟨U+2800×400⟩; echo the-end-of-it");
    await expect(effect(run, /⟨U\+2800×400⟩; echo the-end-of-it/)).toBeVisible();
    await yard.api.approve(blank);
    await yard.api.asked(id, blank.id);
    await expect(shown).toContainText("berth-299; echo the-end-of-it");
    await allBefore(shown, effect(run, /^Run shell.* … .*; echo the-end-of-it/));
    await page.goto(`/approvals/${(await yard.api.asked(id, blank.id)).id}`);
    const main = page.getByRole("main");
    await expect(main.locator(".exact pre")).toContainText("berth-299; echo the-end-of-it");
    await allBefore(main.locator(".exact pre"), main.getByRole("button", { name: /^Run shell/ }));
    await yard.api.through(id);
  });
}

/** All of a text is on the way to a button, in no box of its own that could be left unread, and read in the order of its letters. */
async function allBefore(text: Locator, button: Locator): Promise<void> {
  const inner = await text.evaluate((element) => ({
    hidden: element.scrollHeight - element.clientHeight,
    bottom: element.getBoundingClientRect().bottom,
    order: getComputedStyle(element).unicodeBidi,
  }));
  expect(inner.hidden).toBeLessThanOrEqual(1);
  expect(inner.order).toBe("isolate-override");
  expect(await button.evaluate((element) => element.getBoundingClientRect().top)).toBeGreaterThanOrEqual(inner.bottom);
}

test("c11 a yes that lasts waits for what its rule would allow", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  let answer = (): void => undefined;
  const held = new Promise<void>((done) => (answer = done));
  await page.route(/policy_add/, async (route) => {
    await held;
    await route.continue();
  });
  const run = await RunPage.open(page, id);
  await run.panel().getByText(words("approvals.scope.project"), { exact: true }).click();
  const lasting = effect(run, /^Run shell in this project/);
  await expect(lasting).toHaveAccessibleDescription(words("approvals.scope.looking"));
  await expect(lasting).toBeDisabled();
  answer();
  await expect(run.panel()).toContainText(/It covers the command/);
  await expect(lasting).toBeEnabled();
  await yard.api.through(id);
});

test("c11 a rule that cannot be looked at is not stored", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const error = { code: "INTERNAL_ERROR", message: "No.", issues: [], retryable: false };
  await page.route(/policy_add/, (route) => route.fulfill({ json: { ok: false, error, artifacts: [], logs: [], meta: {} } }));
  const run = await RunPage.open(page, id);
  await run.panel().getByText(words("approvals.scope.project"), { exact: true }).click();
  const lasting = effect(run, /^Run shell in this project/);
  await expect(lasting).toHaveAccessibleDescription(words("approvals.scope.notLooked"));
  await expect(lasting).toBeDisabled();
  await run.panel().getByText(words("approvals.scope.once"), { exact: true }).click();
  await effect(run, /^Run shell:/).click();
  await run.shows("completed");
});

test("c12 Enter takes no effect in a window either", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await page.getByRole("button", { name: words("run.cancelRun") }).first().click();
  const cancel = page.getByRole("dialog").getByRole("button", { name: new RegExp(words("run.effect.cancel")) });
  await expect(cancel).toBeEnabled();
  await cancel.focus();
  await page.keyboard.press("Enter");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await run.shows("needs_approval");
  await page.keyboard.press("Space");
  await run.shows("cancelled");
});
