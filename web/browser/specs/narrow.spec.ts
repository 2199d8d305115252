// On a phone: nothing is wider than the screen, and a person can decide.
// clause: C20
import { type Everything, everything } from "../support/everything.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";

test.use({ viewport: { width: 360, height: 740 } });

const ROUTES: ((all: Everything) => string)[] = [
  () => "/runs",
  () => "/runs/new",
  ({ story }) => `/runs/${story}`,
  ({ waiting }) => `/runs/${waiting}`,
  ({ failed }) => `/runs/${failed}`,
  ({ review }) => `/runs/${review}/diff`,
  ({ story }) => `/runs/${story}/artifacts`,
  ({ story }) => `/runs/${story}/transcript`,
  ({ story }) => `/runs/${story}/audit`,
  () => "/approvals",
  ({ approval }) => `/approvals/${approval}`,
  () => "/agents",
  () => "/edges",
  () => "/policy",
  () => "/audit",
  () => "/settings",
  () => "/dev",
  () => "/dev/run_create",
];

test("c20 no page is wider than a phone", async ({ yard, page }) => {
  const all = await everything(yard);
  for (const route of ROUTES) {
    await page.goto(route(all));
    await expect(page.getByRole("main").getByRole("heading").first()).toBeVisible();
    const beyond = await page.evaluate(() => {
      const wide = document.documentElement.scrollWidth - innerWidth;
      return wide <= 0 ? [] : [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((each) => `${each.tagName}.${each.className}`);
    });
    expect(beyond, route(all)).toEqual([]);
  }
});

test("c20 a decision is made on a phone", async ({ yard, page }) => {
  const id = await yard.start("asks-shell", "Check the prices");
  const asked = await yard.api.asked(id);
  await page.goto("/approvals");
  await page.locator(`a[href*="${asked.id}"]`).first().click();
  const effect = page.getByRole("main").getByRole("button", { name: /^Run shell/ }).first();
  await effect.scrollIntoViewIfNeeded();
  const box = await effect.boundingBox();
  expect(box?.height, "large enough for a finger").toBeGreaterThanOrEqual(28);
  await effect.click();
  await yard.api.until(id, "completed");
});

test("c20 a run's page on a phone has its state, its timeline and the decision", async ({ yard, page }) => {
  const id = await yard.start("asks-shell", "Check the prices");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await run.shows("needs_approval");
  await expect(run.panel().getByRole("button", { name: /^Run shell/ })).toBeEnabled();
  // Once everything is drawn and the end is followed, and not only in the first frame.
  await expect(run.pill).toBeInViewport();
  const effect = run.panel().getByRole("button", { name: /^Run shell/ });
  await effect.scrollIntoViewIfNeeded();
  await effect.click();
  await run.shows("completed");
});

test("c20 twice as large is as usable", async ({ yard, page }) => {
  await page.setViewportSize({ width: 640, height: 400 });
  const { waiting } = await everything(yard);
  const run = await RunPage.open(page, waiting);
  await run.panel().getByRole("button", { name: /^Run shell/ }).scrollIntoViewIfNeeded();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
});

test("c20 between a phone and a desk nothing is wider than the window, and text has room", async ({ yard, page }) => {
  const { waiting, review } = await everything(yard);
  for (const width of [721, 768, 900, 1024, 1180]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of [`/runs/${waiting}`, `/runs/${review}/diff`, "/approvals", "/runs"]) {
      await page.goto(path);
      const heading = page.getByRole("main").getByRole("heading", { level: 1 });
      await expect(heading).toBeVisible();
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${path} at ${width}`).toBeLessThanOrEqual(0);
      expect((await heading.boundingBox())?.width, `the title of ${path} at ${width}`).toBeGreaterThan(30);
    }
  }
});
