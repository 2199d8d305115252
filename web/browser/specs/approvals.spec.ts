// Deciding: looking changes nothing, an effect is sent once and counts when the run records it, and what changed is not approved.
// clause: C12
// clause: J01
import type { Page } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

/** The requests that decide something. */
function decisions(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && /resolve|apply|undo|cancel/.test(request.url())) sent.push(request.url());
  });
  return sent;
}

const effect = (run: RunPage, name: RegExp) => run.panel().getByRole("button", { name });

test("c12 review is read-only: it opens the diff and sends nothing", async ({ yard, page }) => {
  const id = await yard.start("edits", "Count begun metres whole", { workspace: await yard.repository() });
  const asked = await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  const sent = decisions(page);
  const review = run.panel().getByRole("link", { name: /^Review/ });
  await expect(review).toContainText(words("approvals.readOnly"));
  await review.click();
  await page.waitForURL(/\/diff/);
  await expect(page.getByText("src/booking.js").first()).toBeVisible();
  expect(sent).toEqual([]);
  expect((await yard.api.open(id)).map((approval) => approval.id)).toEqual([asked.id]);
});

test("c12 a double click on an effect is one decision, which counts when the run records it", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  const sent = decisions(page);
  await effect(run, /^Run shell/).dblclick();
  await run.shows("completed");
  expect(sent).toHaveLength(1);
  const resolved = (await yard.api.events(id)).filter((event) => event.type === "run.approval.resolved");
  expect(resolved).toHaveLength(1);
});

test("c12 what is sent says so until the event arrives", async ({ yard, page, wire }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const events = await yard.api.events(id);
  wire.holdAt(id, events.length);
  const run = await RunPage.open(page, id, { base: wire.url });
  await effect(run, /^Run shell/).click();
  await yard.api.until(id, "completed");
  await run.shows("needs_approval");
  await expect(run.panel()).toContainText(words("approvals.stage.recorded"));
  await expect(run.panel()).not.toContainText(/approved by/i);
});

test("c12 Enter takes no effect, and the focus starts on what changes nothing", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  const asked = await yard.api.asked(id);
  const sent = decisions(page);
  await page.goto(`/approvals/${asked.id}`);
  await expect(page.getByRole("main").getByRole("button", { name: /^Run shell/ })).toBeEnabled();
  await expect(page.getByRole("main").getByRole("link", { name: /^Review/ })).toBeFocused();
  const run = await RunPage.open(page, id);
  await expect(effect(run, /^Run shell/)).toBeEnabled();
  expect(await page.evaluate(() => document.activeElement?.closest("button, input, select, textarea") ?? null), "nothing to press").toBeNull();
  await page.keyboard.press("a");
  await expect(run.panel().getByRole("link", { name: /^Review/ })).toBeFocused();
  await effect(run, /^Run shell/).focus();
  await page.keyboard.press("Enter");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  expect(sent).toEqual([]);
  await page.keyboard.press("Space");
  await run.shows("completed");
  expect(sent).toHaveLength(1);
});

test("c12 decided in one tab, another one says who and takes the buttons away", async ({ yard, page, context }) => {
  const id = await yard.start("asks-twice");
  await yard.api.asked(id);
  const [here, there] = [await RunPage.open(page, id), await RunPage.open(await context.newPage(), id)];
  await expect(effect(there, /echo first/)).toBeVisible();
  await effect(here, /echo first/).click();
  await expect(effect(here, /echo second/)).toBeVisible();
  await expect(effect(there, /echo second/)).toBeVisible();
  await expect(effect(there, /echo first/)).toHaveCount(0);
  await expect(there.feed).toContainText(/owner/);
  await effect(there, /echo second/).click();
  await here.shows("completed");
  await there.shows("completed");
});

/** Two people's answers to the same question, each as it is given in the page. */
const ANSWERS = {
  approve: async (run: RunPage): Promise<void> => effect(run, /^Run shell/).click(),
  reject: async (run: RunPage): Promise<void> => effect(run, new RegExp(words("approvals.effect.rejectEnd"))).click(),
};

for (const [first, second, state, decided] of [
  ["approve", "reject", "completed", "approved"],
  ["reject", "approve", "cancelled", "rejected"],
] as const) {
  const title = `c12 of two tabs that decide at once, the one to ${first} comes first: the one to ${second} is told who decided, and how`;
  test(title, async ({ yard, context, page, wire, watch }) => {
    watch.expect(/status of 409/);
    const id = await yard.start("asks-shell");
    await yard.api.asked(id);
    const [here, there] = [await RunPage.open(page, id), new RunPage(await context.newPage(), id, wire.url)];
    // What is decided here is on its way there for longer than anybody waits.
    wire.holdAt(id, (await yard.api.events(id)).length);
    await there.go();
    for (const [run, says] of [[here, first], [there, second]] as const) {
      await expect(effect(run, /^Run shell/)).toBeEnabled();
      if (says === "approve") continue;
      await run.panel().getByRole("button", { name: words("approvals.reject") }).click();
      await run.panel().getByRole("textbox", { name: words("approvals.reason") }).fill("Not on a Friday.");
    }
    const sent = decisions(there.page);
    await ANSWERS[first](here);
    await here.shows(state);
    await ANSWERS[second](there);
    await expect(there.panel()).toContainText(words(`approvals.decided.${decided}`, { actor: "owner" }));
    await expect(there.panel()).toContainText(words("approvals.stage.late"));
    await expect(there.panel().getByRole("button")).toHaveCount(0);
    if (decided === "rejected") await expect(there.panel()).toContainText("Not on a Friday.");
    expect(sent, "it was sent once, and nothing after it").toHaveLength(1);
    await expect(here.panel()).toContainText(words(`approvals.decided.${decided}`, { actor: "owner" }));
    await expect(here.panel()).not.toContainText(words("approvals.stage.late"));
    const resolved = (await yard.api.events(id)).filter((event) => event.type === "run.approval.resolved");
    expect(resolved.map((event) => event.payload["resolution"])).toEqual([decided]);
  });
}

test("c13 content that changed after it was shown is not approved", async ({ yard, page, wire, watch }) => {
  const id = await yard.start("asks-shell");
  const asked = await yard.api.asked(id);
  const other = asked.digest.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  // As if it had been another command when the page was drawn.
  wire.rewrite(id, (event) => (event.payload["digest"] === asked.digest ? { ...event, payload: { ...event.payload, digest: other } } : event));
  watch.expect(/status of 409/);
  const run = await RunPage.open(page, id, { base: wire.url });
  await effect(run, /^Run shell/).click();
  await expect(run.panel()).toContainText(words("approvals.stage.stale"));
  expect((await yard.api.open(id)).map((approval) => approval.id)).toEqual([asked.id]);
  await yard.api.until(id, "needs_approval");
});

test("c12 a rejection needs a reason, which stays with the run", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  const sent = decisions(page);
  await run.panel().getByRole("button", { name: words("approvals.reject") }).click();
  const end = effect(run, new RegExp(words("approvals.effect.rejectEnd")));
  await expect(end).toHaveAttribute("aria-disabled", "true");
  await end.click({ force: true });
  expect(sent).toEqual([]);
  await run.panel().getByRole("textbox", { name: words("approvals.reason") }).fill("Not on a Friday.");
  await end.click();
  await run.shows("cancelled");
  await expect(page.getByRole("main")).toContainText("Not on a Friday.");
  expect((await yard.api.run(id)).message).toBe("Not on a Friday.");
});

test("c12 a question has its form, and the answer reaches the agent", async ({ yard, page }) => {
  const id = await yard.start("asks-question");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await expect(run.panel()).toContainText("Which berth should the Aurora have");
  await run.panel().getByLabel(/^berth/).selectOption({ label: "A2" });
  await run.panel().getByLabel(/^nights/).fill("3");
  await effect(run, /^Send answer/).click();
  await run.shows("completed");
  const said = (await yard.api.events(id)).map((event) => String(event.payload["text"] ?? "")).join("\n");
  expect(said).toContain('{"berth":"A2","nights":3}');
});

test("c12 an answer that does not fit is refused at its field, and nothing that was typed is lost", async ({ yard, page, watch }) => {
  watch.expect(/status of 400/);
  const id = await yard.start("asks-question");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  const [berth, nights] = [run.panel().getByLabel(/^berth/), run.panel().getByLabel(/^nights/)];
  await berth.selectOption({ label: "A2" });
  await nights.fill("300");
  await effect(run, /^Send answer/).click();
  await expect(nights).toBeFocused();
  await expect(nights).toHaveAttribute("aria-invalid", "true");
  await expect(nights).toHaveValue("300");
  await expect(berth).not.toHaveAttribute("aria-invalid", "true");
  await expect(nights).toHaveAccessibleDescription(/30/);
  // What is wrong by itself is said without the hub, in the place of what that said.
  await nights.fill("9007199254740993");
  await effect(run, /^Send answer/).click();
  await expect(nights).toHaveAccessibleDescription(/9007199254740993/);
  await nights.fill("30");
  await effect(run, /^Send answer/).click();
  await run.shows("completed");
});

test("c12 somebody who may only look is told so, and can decide nothing", async ({ yard, browser }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const viewer = await yard.api.person(`viewer-${Date.now()}`, "viewer");
  const context = await browser.newContext({ locale: "en-GB", baseURL: yard.hub.url });
  const page = await context.newPage();
  await page.goto(await viewer.link());
  await page.waitForURL((url) => url.pathname.startsWith("/runs"));
  const run = await RunPage.open(page, id);
  await expect(run.panel()).toContainText(words("approvals.noPermission"));
  const sent = decisions(page);
  for (const button of await run.panel().getByRole("button", { name: /^Run shell/ }).all()) await button.click({ force: true });
  expect(sent).toEqual([]);
  await context.close();
});

test("c12 the inbox has what waits of all runs, and a decision there counts", async ({ yard, page }) => {
  const id = await yard.start("asks-shell", "Check the prices");
  const asked = await yard.api.asked(id);
  await page.goto(`/approvals/${asked.id}`);
  await expect(page.getByRole("heading", { level: 1, name: words("approvals.title") })).toBeVisible();
  await page.getByRole("main").getByRole("button", { name: /^Run shell/ }).first().click();
  await yard.api.until(id, "completed");
  await expect(page.getByRole("main")).toContainText(/approved by owner|decided by you/i);
});
