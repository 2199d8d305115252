// Switching theme and language changes colours and words, and nothing else.
// clause: C20
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

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

  await page.getByRole("group", { name: words("common.theme.name") }).getByRole("button", { name: words("common.theme.dark") }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.getByRole("group", { name: words("common.language.name") }).getByRole("button", { name: "中文" }).click();
  await expect(page.locator("html")).toHaveAttribute("lang", /^zh/);
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
