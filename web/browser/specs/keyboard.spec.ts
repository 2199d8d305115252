// Everything with the keyboard alone, and always in sight where one is.
// clause: C20
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

/** More stops than a page has. */
const STOPS_MAX = 150;

/** What has the focus: its role or tag, and its name. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const here = document.activeElement;
    if (!(here instanceof HTMLElement)) return "";
    const label = here.getAttribute("aria-label") ?? ("labels" in here ? (here as HTMLInputElement).labels?.[0]?.textContent : null);
    return `${here.tagName.toLowerCase()} ${label ?? here.textContent.trim()}`;
  });
}

/** Goes on with Tab until the focus is there; it is always in sight on the way. */
async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const passed: string[] = [];
  for (let stop = 0; stop < STOPS_MAX; stop += 1) {
    const here = await focused(page);
    if (wanted.test(here)) return;
    passed.push(here.slice(0, 60));
    await page.keyboard.press("Tab");
    expect(await marked(page), `the focus is marked at ${await focused(page)}`).toBe(true);
  }
  throw new Error(`Tab never came to ${wanted}:\n${passed.join("\n")}`);
}

/** Whether what has the focus looks like it. */
function marked(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    let here: Element | null = document.activeElement;
    if (here === null || here === document.body) return true;
    // A control that is only heard shows its focus at its label.
    for (let up = 0; here !== null && up < 3; up += 1, here = here.parentElement) {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(here);
      if ((outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none") return true;
    }
    return false;
  });
}

test("c20 from a new run to its applied changes without a pointer", async ({ yard, page }) => {
  const folder = await yard.repository("quay");
  await page.goto("/runs");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("c");
  await page.waitForURL(/\/runs\/new/);
  await tabTo(page, new RegExp(`^textarea ${words("runs.create.task")}`));
  await page.keyboard.type("Say in the docs how metres are counted");
  await tabTo(page, new RegExp(`^select ${words("runs.create.agent")}`));
  await page.keyboard.type("journey");
  await tabTo(page, new RegExp(`^select ${words("runs.create.workspace")}`));
  await page.keyboard.type("quay");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/runs\/run_/);
  const run = new RunPage(page, /run_[0-9a-z]+/.exec(page.url())?.[0] ?? "");

  await run.shows("needs_approval");
  await page.keyboard.press("a");
  expect(await focused(page), "deciding begins with looking").toMatch(new RegExp(words("approvals.review")));
  await tabTo(page, /^button Run shell/);
  await expect(page.locator(":focus")).toBeEnabled();
  await page.keyboard.press("Space");
  await expect(run.panel().getByRole("button", { name: /^Apply 1 file/ })).toBeVisible();

  await page.keyboard.press("a");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/diff/);
  await expect(page.getByText("docs/prices.md").first()).toBeVisible();
  await page.goBack();
  await page.keyboard.press("a");
  await tabTo(page, /^button Apply 1 file/);
  await expect(page.locator(":focus")).toBeEnabled();
  await page.keyboard.press("Space");
  await run.shows("completed");
  expect(await readFile(join(folder, "docs/prices.md"), "utf8")).toContain("A begun metre counts whole.");
});

test("c20 a line is commented on and a hunk left out without a pointer", async ({ yard, page }) => {
  const id = await yard.start("edits", "Count begun metres whole", { workspace: await yard.repository() });
  await yard.api.asked(id);
  await RunPage.open(page, id, { part: "/diff" });
  await expect(page.getByText("Releasing a berth says whether there was one.").first()).toBeVisible();
  await page.keyboard.press("n");
  await tabTo(page, new RegExp(`^button ${words("diff.commentOn", { line: 4 })}`));
  await page.keyboard.press("Enter");
  await page.keyboard.type("Leave this one out of the list.");
  await page.keyboard.press("Control+Enter");
  await expect(page.getByText("Leave this one out of the list.")).toBeVisible();
  expect(await focused(page), "one goes on where one was").toMatch(new RegExp(words("diff.commentOn", { line: 4 })));

  const second = words("diff.hunkLabel", { number: 2, path: "src/booking.js" });
  for (let hunk = 0; hunk < 6 && (await focused(page)) !== `div ${second}`; hunk += 1) await page.keyboard.press("n");
  expect(await focused(page)).toBe(`div ${second}`);
  await page.keyboard.press("Tab");
  expect(await marked(page)).toBe(true);
  await page.keyboard.press("ArrowRight");
  const choice = page.getByRole("radiogroup", { name: second });
  await expect(choice.getByRole("radio", { name: words("diff.leaveOut") })).toBeChecked();
  await expect(page.getByRole("button", { name: /^Apply 3 files/ })).toContainText("4 hunks");
});

test("c20 the keys of a page are listed, and the list is left with Escape", async ({ yard, page }) => {
  const run = await RunPage.open(page, await yard.start("waits"));
  await expect(run.rows.first()).toBeVisible();
  await page.keyboard.press("?");
  const list = page.getByRole("dialog", { name: words("common.keys.title") });
  await expect(list).toContainText(words("run.key.next"));
  await page.keyboard.press("Escape");
  await expect(list).toHaveCount(0);
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/sel=\d+/);
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL(/\/approvals/);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: words("common.palette.title") }).waitFor();
  await page.keyboard.type("audit");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/audit/);
});

test("c20 Tab goes through a whole run's page and out of it", async ({ yard, page }) => {
  const id = await yard.start("asks-shell");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await expect(run.panel().getByRole("button").first()).toBeVisible();
  await page.locator("body").evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  const stops = new Set<string>();
  let left = false;
  for (let stop = 0; stop < STOPS_MAX && !left; stop += 1) {
    await page.keyboard.press("Tab");
    expect(await marked(page), await focused(page)).toBe(true);
    stops.add(await focused(page));
    left = await page.evaluate(() => document.activeElement === document.body);
  }
  expect(left, `nothing holds the focus: ${[...stops].join(", ")}`).toBe(true);
  for (const wanted of [/Run shell/, /Reject/, /Review/]) expect([...stops].some((stop) => wanted.test(stop)), String(wanted)).toBe(true);
});

test("c20 while somebody types, letters are letters", async ({ page }) => {
  await page.goto("/runs/new");
  const task = page.getByRole("textbox", { name: words("runs.create.task") });
  await task.fill("");
  await task.pressSequentially("c g r a ? j k");
  await expect(task).toHaveValue("c g r a ? j k");
  expect(new URL(page.url()).pathname).toBe("/runs/new");
});
