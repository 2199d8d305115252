// Switching theme and language changes colours and words, and nothing else.
// clause: C20
import type { Page } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { type Language, words } from "../support/words.ts";

const NAMES: Record<Language, string> = { en: "English", zh: "中文" };

/** Chooses a theme, and then a language; `from` is the one in which the page is. */
async function toSwitch(page: Page, theme: "light" | "dark" | "contrast", language: Language, from: Language = "en"): Promise<void> {
  const choice = (key: string, name: string) => page.getByRole("group", { name: words(key, {}, from) }).getByRole("button", { name });
  await choice("common.theme.name", words(`common.theme.${theme}`, {}, from)).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
  await choice("common.language.name", NAMES[language]).click();
  await expect(page.locator("html")).toHaveAttribute("lang", language === "zh" ? /^zh/ : "en");
}

test("c20 theme and language are switched in the midst of a run: place, choice and stream stay", async ({ yard, page, wire }) => {
  const id = await yard.start("bursts");
  await yard.api.until(id, "running");
  const run = await RunPage.open(page, id, { base: wire.url });
  await yard.api.steer(id, "begin");
  await expect.poll(() => run.lastSequence()).toBeGreaterThan(800);
  await run.rows.last().hover();
  await page.mouse.wheel(0, -1500);
  const chosen = run.rows.nth(3);
  await chosen.click();
  await expect(page).toHaveURL(/sel=\d+/);
  const facts = () =>
    page.evaluate(() => {
      const feed = document.querySelector('[role="feed"]');
      const scroller = [feed, feed?.parentElement, feed?.parentElement?.parentElement].find((each) => (each?.scrollTop ?? 0) > 0);
      const pill = document.querySelector("main header .slot")?.getBoundingClientRect();
      return { scroll: scroller?.scrollTop, pill: [pill?.x, pill?.y, pill?.height], search: location.search };
    });
  const [before, streams, sequence] = [await facts(), wire.streams(id), await run.lastSequence()];
  expect(before.scroll).toBeGreaterThan(0);

  await toSwitch(page, "dark", "zh");
  await run.shows("running", "zh");
  expect(await facts()).toEqual(before);
  expect(wire.streams(id), "no stream was opened anew").toBe(streams);
  await yard.api.steer(id, "and on");
  await expect.poll(() => run.lastSequence(), { message: "the stream goes on" }).toBeGreaterThan(sequence + 800);
  expect(await facts()).toEqual(before);

  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(page.locator("html")).toHaveAttribute("lang", /^zh/);
  await run.shows("running", "zh");
});

test("c20 an opened row and a half-written reason stay as they are when theme and language are switched", async ({ yard, page }) => {
  const id = await yard.start("story", "Find out why a berth is booked twice", { workspace: await yard.repository() });
  const first = await yard.api.asked(id);
  await yard.api.approve(first);
  await yard.api.asked(id, first.id);
  const run = await RunPage.open(page, id);
  const row = run.feed.locator('[data-kind="tool"]').filter({ hasText: "sh tests/run.sh" });
  await row.getByRole("button").first().click();
  const output = row.getByText("ok 1 - a ship that fits");
  await expect(output).toBeVisible();
  await run.panel().getByRole("button", { name: words("approvals.reject") }).click();
  const reason = (language: Language) => run.panel(language).getByRole("textbox", { name: words("approvals.reason", {}, language) });
  await reason("en").pressSequentially("Not before the ta");
  for (const [theme, language, from] of [["dark", "zh", "en"], ["contrast", "en", "zh"]] as const) {
    await toSwitch(page, theme, language, from);
    await run.shows("needs_approval", language);
    await expect(row.getByRole("button").first()).toHaveAttribute("aria-expanded", "true");
    await expect(output).toBeVisible();
    await expect(reason(language)).toHaveValue("Not before the ta");
  }
  await reason("en").press("End");
  await reason("en").pressSequentially("bles agree");
  await expect(reason("en")).toHaveValue("Not before the tables agree");
  await yard.api.through(id);
});

test("c20 the server draws the chosen theme and language itself, so nothing flashes", async ({ yard, context }) => {
  await context.addCookies([
    { name: "runyard_theme", value: "dark", domain: "127.0.0.1", path: "/" },
    { name: "runyard_language", value: "zh", domain: "127.0.0.1", path: "/" },
  ]);
  const answer = await context.request.get(`${yard.hub.url}/runs`, { headers: { accept: "text/html" } });
  const html = await answer.text();
  expect(html).toMatch(/<html[^>]*lang="zh/);
  expect(html).toMatch(/<html[^>]*data-theme="dark"/);
});
