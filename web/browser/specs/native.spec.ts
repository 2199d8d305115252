// Our own agent, against a model provider on this machine: started, approved, answered and seen to fail in the console.
// clause: C12
// clause: C16
// clause: J01
import type { Browser, Page } from "@playwright/test";
import { HOUSE, nativeYard } from "../support/native.ts";
import { RunPage } from "../support/run-page.ts";
import { contextOf, logIn } from "../support/session.ts";
import { expect, test } from "../support/test.ts";
import { Watch } from "../support/watch.ts";
import { type Language, LANGUAGES, words } from "../support/words.ts";
import type { Yard } from "../support/yard.ts";

/** What happens with our own agent in the console. */
async function withNative(browser: Browser, locale: string, happens: (page: Page, yard: Yard) => Promise<void>): Promise<void> {
  const { yard, stop } = await nativeYard();
  const context = await contextOf(browser, await logIn(await yard.link()), { locale, baseURL: yard.hub.url });
  const watch = await Watch.over(context, yard.hub.url);
  try {
    await happens(await context.newPage(), yard);
  } finally {
    await context.close();
    await stop();
  }
  expect(watch.unexpected()).toEqual([]);
}

/** Starts a run as a person does, on the page for it. */
async function started(page: Page, task: string, language: Language = "en"): Promise<RunPage> {
  await page.goto("/runs/new");
  const form = page.getByRole("main");
  await form.getByRole("combobox", { name: words("runs.create.agent", {}, language) }).selectOption(HOUSE);
  await form.getByRole("textbox", { name: words("runs.create.task", {}, language) }).fill(task);
  await form.getByRole("button", { name: words("runs.effect.start", { agent: HOUSE, workspace: "harbor" }, language) }).click();
  await expect(page).toHaveURL(/\/runs\/run_/);
  return new RunPage(page, new URL(page.url()).pathname.split("/")[2] ?? "");
}

test("j01 our own agent is chosen, its command is approved, and what it reads is one row", async ({ browser }) => {
  await withNative(browser, "en-GB", async (page, yard) => {
    const run = await started(page, '[[scenario:tool shell {"command": "echo ran >> runs.txt"}]]');
    await run.shows("needs_approval");
    await expect(run.panel()).toContainText("echo ran >> runs.txt");
    await run.panel().getByRole("button", { name: /^Run shell/ }).click();
    await run.panel().getByRole("button", { name: /^Apply 1 file/ }).click();
    await run.shows("completed");
    await expect(run.feed).toContainText("The tool was called.");
    // In the session of that one, which knows what was said.
    await page.getByRole("link", { name: words("run.goOn") }).click();
    await page.getByRole("textbox", { name: words("runs.create.task") }).fill('[[scenario:tool read {"path": "README.md"}]]');
    await page.getByRole("button", { name: words("runs.effect.goOn", { agent: HOUSE, workspace: "harbor" }) }).click();
    await expect(page).not.toHaveURL(new RegExp(`new|${run.id}`));
    const next = new RunPage(page, new URL(page.url()).pathname.split("/")[2] ?? "");
    await next.shows("completed");
    await expect(next.rows.filter({ hasText: "README.md" })).toHaveCount(1);
    expect((await yard.api.events(next.id)).filter(({ type }) => type === "run.file.read")).toHaveLength(1);
  });
});

test("j01 a question of our own agent is answered in the console, and the answer is what it reads", async ({ browser }) => {
  await withNative(browser, "en-GB", async (page, yard) => {
    const run = await started(page, '[[scenario:tool ask {"question": "Which quay?", "choices": ["North", "South"]}]]');
    await run.shows("needs_approval");
    await expect(run.panel()).toContainText("Which quay?");
    await run.panel().getByRole("combobox").selectOption("South");
    await run.panel().getByRole("button", { name: words("approvals.effect.answer") }).click();
    await run.shows("completed");
    const recorded = (await yard.api.events(run.id)).filter(({ type }) => type === "run.thread.recorded");
    expect(JSON.stringify(recorded)).toContain("South");
  });
});

for (const language of LANGUAGES) {
  test(`c16 what our own agent failed with says what to do, in ${language}`, async ({ browser }) => {
    await withNative(browser, language === "zh" ? "zh-CN" : "en-GB", async (page) => {
      const run = await started(page, "[[scenario:http-context-length]]", language);
      await run.shows("failed", language);
      const cause = "inference.context_overflow";
      await expect(run.failure).toHaveAttribute("data-code", "runtime_unavailable");
      await expect(run.failure.getByText(cause, { exact: true })).toBeVisible();
      await expect(run.failure.getByRole("heading", { level: 2 })).toHaveText(words(`failures.${cause}.title`, {}, language));
      await expect(run.failure.getByRole("listitem")).toHaveText([words(`failures.${cause}.next`, {}, language)]);
    });
  });
}
