// The list of runs: what it shows is in its address, and it stays current by itself.
// clause: C20
// clause: C23
import { everything } from "../support/everything.ts";
import { expect, test as base, yardOfItsOwn } from "../support/test.ts";
import { words } from "../support/words.ts";

// A hub of its own: the first page of the list has all of its runs.
const test = base.extend({ yard: yardOfItsOwn });

test("c20 filters are in the address, and a reload keeps them", async ({ yard, page }) => {
  const { failed, waiting } = await everything(yard);
  await page.goto("/runs?state=failed");
  await expect(page.locator(`[data-run="${failed}"]`)).toBeVisible();
  await expect(page.locator(`[data-run="${waiting}"]`)).toHaveCount(0);
  await page.goto("/runs?text=winter");
  await expect(page.locator(`[data-run="${waiting}"]`)).toBeVisible();
  await expect(page.locator(`[data-run="${failed}"]`)).toHaveCount(0);
  await page.reload();
  await expect(page.locator(`[data-run="${waiting}"]`)).toBeVisible();
});

test("c20 each filter that is chosen is in the address, and going back undoes the last choice", async ({ yard, page }) => {
  const { failed, waiting, story, review } = await everything(yard);
  const row = (id: string) => page.locator(`[data-run="${id}"]`);
  const address = () => page.evaluate(() => location.pathname + decodeURIComponent(location.search));
  const filters = page.getByRole("search", { name: words("runs.filters") });
  const choose = async (filter: string, option: string): Promise<void> => {
    await filters.getByRole("button", { name: words(`runs.filter.${filter}`) }).click();
    await page.getByRole("menu", { name: words(`runs.filter.${filter}`) }).getByRole("menuitem", { name: option, exact: true }).click();
  };
  await page.goto("/runs");
  await expect(row(failed)).toBeVisible();

  // Several states are ticked one after the other, in a menu that stays.
  await filters.getByRole("button", { name: words("runs.filter.state") }).click();
  for (const state of ["failed", "needs_approval"]) await page.getByRole("menuitemcheckbox", { name: words(`common.state.${state}`) }).click();
  await page.keyboard.press("Escape");
  await expect.poll(address).toBe("/runs?state=needs_approval,failed");
  await expect(row(waiting)).toBeVisible();
  await expect(row(failed)).toBeVisible();
  await expect(row(story)).toHaveCount(0);

  await choose("agent", "asks-shell");
  await expect.poll(address).toBe("/runs?state=needs_approval,failed&agent=asks-shell");
  await expect(row(failed)).toHaveCount(0);
  await expect(row(waiting)).toBeVisible();
  await page.goBack();
  await expect.poll(address).toBe("/runs?state=needs_approval,failed");
  await expect(row(failed)).toBeVisible();
  await choose("state", words("runs.filter.any"));
  await expect.poll(address).toBe("/runs");
  await expect(row(story)).toBeVisible();

  await choose("workspace", "marina");
  await expect.poll(address).toBe("/runs?workspace=marina");
  await expect(row(review)).toBeVisible();
  await expect(row(story)).toHaveCount(0);
  await choose("since", words("runs.since.7d"));
  await expect.poll(address).toBe("/runs?workspace=marina&since=7d");
  await expect(row(review)).toBeVisible();
  await filters.getByRole("group", { name: words("runs.views") }).getByRole("button", { name: words("runs.view.ended") }).click();
  await expect.poll(address).toBe("/runs?workspace=marina&since=7d&view=ended");
  await expect(row(review)).toHaveCount(0);
  await page.getByRole("button", { name: words("runs.none.clear") }).click();
  await expect.poll(address).toBe("/runs");

  await filters.getByRole("searchbox", { name: words("runs.searchName") }).fill("winter");
  await expect.poll(address).toBe("/runs?text=winter");
  await expect(row(waiting)).toBeVisible();
  await expect(row(story)).toHaveCount(0);
  await page.reload();
  await expect(filters.getByRole("searchbox")).toHaveValue("winter");
  await expect(row(waiting)).toBeVisible();
  await expect(row(story)).toHaveCount(0);
});

test("c20 the list is current without a reload", async ({ yard, page }) => {
  await page.goto("/runs");
  await expect(page.getByRole("table")).toBeVisible();
  const id = await yard.start("waits", "Appear by yourself");
  const row = page.locator(`[data-run="${id}"]`);
  await expect(row).toHaveAttribute("data-state", "running");
  await yard.api.steer(id, "go on");
  await expect(row).toHaveAttribute("data-state", "completed");
});

test("c20 a new run is given to who needs no key, and then to who had the last one", async ({ person }) => {
  const { context } = await person();
  const page = await context.newPage();
  await page.goto("/runs/new");
  const agent = page.getByRole("combobox", { name: words("runs.create.agent") });
  await expect(agent).toHaveValue("demo");
  await agent.selectOption("short");
  await page.getByRole("textbox", { name: words("runs.create.task") }).fill("Look around");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/runs\/run_/);
  await page.goto("/runs/new");
  await expect(agent).toHaveValue("short");
});

test("c23 the search finds runs by the words that the rest of Runyard has for them", async ({ yard, page }) => {
  const { failed } = await everything(yard);
  const { run } = await yard.api.get<{ run: { code: string } }>(`/runs/${failed}`);
  await page.goto("/settings");
  await expect(page.getByRole("heading", { level: 1, name: words("common.settings.title") })).toBeVisible();
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: words("common.palette.title") });
  const finds = async (text: string, run: string, other: string): Promise<void> => {
    await palette.getByRole("combobox").fill(text);
    await expect(palette.getByRole("option", { name: run }), text).toHaveCount(1);
    await expect(palette.getByRole("option", { name: other }), text).toHaveCount(0);
  };
  const [asking, translating, poem] = ["Check the prices of the winter season", "Translate the price list", "Write a poem about the harbor"];
  await finds("needs_approval", asking, translating);
  await finds(words("common.state.needs_approval"), asking, translating);
  await finds("cancelled", poem, translating);
  await finds(run.code, translating, poem);
  await finds(failed, translating, asking);
});
