// A run that fails says so in plain words, in both languages: its code, a safe message and what to do next.
// clause: C16
import { homedir } from "node:os";
import { FAILURE_KINDS, RUN_CODES } from "../support/codes.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { type Language, LANGUAGES, words } from "../support/words.ts";

/** What the dictionary has for a failure, as it is drawn. */
function dictionary(name: string, part: "title" | "next", language: Language): string {
  const text = words(`failures.${name}.${part}`, {}, language).replaceAll("`", "");
  expect(/\p{Script=Han}/u.test(text), `${text} is ${language}`).toBe(language === "zh");
  return text;
}

/** What a card never says. */
const EMPTY_WORDS = /something went wrong|出错了|unknown error/i;

for (const language of LANGUAGES) {
  test.describe(`in ${language}`, () => {
    test.use({ locale: language === "zh" ? "zh-CN" : "en-GB" });

    test("c16 every code with which a run can end has a card", async ({ yard, page }) => {
      const runs = await Promise.all(RUN_CODES.map(async ({ code }) => ({ code, id: await yard.start(`ends-${code}`) })));
      for (const { code, id } of runs) {
        const { message } = await yard.api.until(id, "failed");
        const run = await RunPage.open(page, id);
        await run.shows("failed", language);
        const card = run.failure;
        await expect(card).toHaveAttribute("data-code", code);
        await expect(card.getByRole("heading", { level: 2 })).toHaveText(dictionary(code, "title", language));
        await expect(card.getByText(code, { exact: true })).toBeVisible();
        await expect(card.getByText(message ?? "", { exact: true })).toBeVisible();
        await expect(card.getByRole("listitem").first()).toHaveText(dictionary(code, "next", language));
        const text = await page.locator("body").innerText();
        expect(text).not.toContain(homedir());
        expect(text).not.toMatch(EMPTY_WORDS);
      }
    });

    test("c16 every way in which a backend fails is named beside the run's code", async ({ yard, page }) => {
      const runs = await Promise.all(FAILURE_KINDS.map(async ({ code }) => ({ kind: code, id: await yard.start(`fails-${code}`) })));
      for (const { kind, id } of runs) {
        const { code = "" } = await yard.api.until(id, "failed");
        const run = await RunPage.open(page, id);
        const card = run.failure;
        await expect(card).toHaveAttribute("data-code", code);
        await expect(card.getByRole("heading", { level: 2 })).toHaveText(dictionary(kind, "title", language));
        await expect(card).toContainText(words("common.failureKind", { kind }, language));
        // What to do after this kind, and not what would be done after any failure of this code.
        await expect(card.getByRole("listitem")).toHaveText([dictionary(kind, "next", language)]);
      }
    });
  });
}

test("c16 a run that fails before its agent begins is as visible", async ({ yard, page }) => {
  const place = await yard.place("broken", { "runyard.toml": '[workspace]\nsetup = [["sh", "-c", "echo no luck >&2; exit 3"]]\n' });
  await yard.hub.commandIn(place, "trust", "--confirm");
  const id = await yard.start("short", "Look around", { workspace: place });
  await yard.api.until(id, "failed");
  const run = await RunPage.open(page, id);
  await expect(run.failure).toHaveAttribute("data-code", "setup_failed");
  await expect(run.failure).toContainText("exit code 3");
});
