// A run goes on being shown as it is: after a reload, a lost connection and the death of the hub, without a gap and without a double.
// clause: C08
// clause: C22
import { RunPage } from "../support/run-page.ts";
import { numbers, untilQuiet, whole } from "../support/timeline.ts";
import { expect, test } from "../support/test.ts";
import { Yard } from "../support/yard.ts";
import { LANGUAGES, words } from "../support/words.ts";
import { contextOf, logIn } from "../support/session.ts";

test("c08 a reload in the midst of a run shows the same timeline, and goes on", async ({ yard, page }) => {
  const id = await yard.start("live");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id, { part: "?view=json" });
  await yard.api.steer(id, "begin");
  await expect.poll(() => run.lastSequence()).toBeGreaterThan(200);
  await page.reload();
  await expect.poll(() => run.lastSequence()).toBeGreaterThan(1500);
  await page.reload();
  await untilQuiet(yard, run);
  const events = await yard.api.events(id);
  expect(await whole(run)).toBe(`1-${events.length}`);
});

test("c08 a lost connection is said, and what came meanwhile is there afterwards", async ({ yard, page, wire, watch }) => {
  watch.expect(/ERR_(CONNECTION|EMPTY|INCOMPLETE|SOCKET|NETWORK)/);
  const id = await yard.start("live");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id, { base: wire.url, part: "?view=json" });
  await expect(run.link).toHaveAttribute("data-link", "live");
  wire.cut();
  await expect(run.link).toHaveAttribute("data-link", /waiting|connecting/);
  await yard.api.steer(id, "begin");
  await expect.poll(async () => (await yard.api.events(id)).length).toBeGreaterThan(3000);
  expect(await run.lastSequence(), "nothing came through").toBeLessThan(100);
  wire.mend();
  await expect(run.link).toHaveAttribute("data-link", "live");
  await untilQuiet(yard, run);
  expect(await whole(run)).toBe(`1-${(await yard.api.events(id)).length}`);
});

test("j05 the hub is killed in the midst of a run: the page says so, and goes on when it is back", async ({ browser }) => {
  const yard = await Yard.start();
  const context = await contextOf(browser, await logIn(await yard.link()), { locale: "en-GB", baseURL: yard.hub.url });
  try {
    const id = await yard.start("live");
    await yard.api.until(id, "running");
    const run = await RunPage.open(await context.newPage(), id, { part: "?view=json" });
    await yard.api.steer(id, "begin");
    await expect.poll(() => run.lastSequence()).toBeGreaterThan(300);
    await yard.hub.kill();
    await expect(run.link).toHaveAttribute("data-link", /waiting|connecting/);
    await expect(run.link).toContainText(/Offline|Reconnecting/);
    await run.shows("running");
    await yard.hub.up();
    // A hub that starts knows no sessions of before. What was open stays, and goes on after a login.
    const again = run.page.getByRole("dialog", { name: words("common.session.ended") });
    await again.getByRole("textbox", { name: words("login.paste") }).fill(await yard.link());
    await again.getByRole("button", { name: words("login.logIn") }).click();
    await expect(again).toHaveCount(0);
    await expect(run.link).toHaveAttribute("data-link", "live");
    await untilQuiet(yard, run);
    const events = await yard.api.events(id);
    expect(events.map((event) => event.sequence)).toEqual(events.map((_, index) => index + 1));
    expect(await whole(run)).toBe(`1-${events.length}`);
    await yard.api.steer(id, "and end");
    await run.shows("completed");
  } finally {
    await context.close();
    await yard.hub.remove();
  }
});

test("c08 a run that is over is shown whole after a reload, and its stream is not opened again and again", async ({ yard, page, wire }) => {
  const id = await yard.start("story");
  await yard.api.through(id);
  const run = await RunPage.open(page, id, { base: wire.url });
  await run.shows("completed");
  await expect(run.link).toHaveAttribute("data-link", "ended");
  const before = await numbers(run);
  const opened = wire.streams(id);
  await page.reload();
  await run.shows("completed");
  await expect(run.link).toHaveAttribute("data-link", "ended");
  expect(await numbers(run)).toEqual(before);
  expect(wire.streams(id)).toBeLessThanOrEqual(opened * 2);
});

for (const language of LANGUAGES) {
  test.describe(`in ${language}`, () => {
    test.use({ locale: language === "zh" ? "zh-CN" : "en-GB" });

    test("c22 a run that has ended goes on as a new one in its session", async ({ yard, page }) => {
      const id = await yard.start("short");
      await yard.api.until(id, "completed");
      const run = await RunPage.open(page, id);
      await run.head.getByRole("button", { name: words("run.moreActions", {}, language) }).click();
      await expect(page.getByRole("menuitem", { name: words("run.goOn", {}, language) })).toBeVisible();
      await page.keyboard.press("Escape");
      await page.getByRole("region", { name: words("run.outcomeLabel", {}, language) }).getByRole("link", { name: words("run.goOn", {}, language) }).click();
      const form = page.getByRole("main");
      await expect(form).toContainText(words("runs.create.continues", {}, language));
      await form.getByRole("textbox", { name: words("runs.create.task", {}, language) }).fill("And now the quay.");
      await form.getByRole("button", { name: words("runs.effect.goOn", { agent: "short", workspace: "harbor" }, language) }).click();
      await expect(page).not.toHaveURL(new RegExp(`new|${id}`));
      const next = new URL(page.url()).pathname.split("/")[2] ?? "";
      const [before, after] = await Promise.all([id, next].map(async (one) => (await yard.api.events(one))[0]?.payload));
      expect(after).toMatchObject({ sessionId: before?.["sessionId"], parentRunId: id });
    });
  });
}

test("c22 a run that goes on yet is not gone on from", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await run.shows("needs_approval");
  await run.head.getByRole("button", { name: words("run.moreActions") }).click();
  await expect(page.getByRole("menuitem", { name: words("run.runAgain") })).toBeVisible();
  await expect(page.getByRole("menuitem", { name: words("run.goOn") })).toHaveCount(0);
});
