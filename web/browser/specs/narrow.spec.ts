// On a phone: nothing is wider than the screen, and a person can decide.
// clause: C20
import type { Locator, Page } from "@playwright/test";
import { violations } from "../support/accessibility.ts";
import { everything } from "../support/everything.ts";
import { openRoute, ROUTES } from "../support/routes.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

test.use({ viewport: { width: 360, height: 740 } });

/** What is meant to be scrolled sideways: a row of tabs, steps or filters, and text whose lines must not be broken. */
const SIDEWAYS = ".tabs, .strip, .filters, .block, .md__table, .lines, .viewer__picture, .viewer__page";

/** What has more in it than it is wide, and what stands out of the window, without being meant to. */
function tooWide(page: Page): Promise<string[]> {
  return page.evaluate((sideways) => {
    const named = (each: Element): string => `${each.tagName}.${each.className}`;
    const all = [...document.querySelectorAll("html, body *")].filter((each) => each.closest(sideways) === null);
    const scrolls = (each: Element): boolean => ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
    const full = all.filter((each) => scrolls(each) && each.scrollWidth > each.clientWidth + 1);
    const wide = document.documentElement.scrollWidth > innerWidth;
    const out = wide ? all.filter((each) => each.getBoundingClientRect().right > innerWidth + 1).slice(0, 5) : [];
    return [...full.map((each) => `${named(each)} holds ${each.scrollWidth} in ${each.clientWidth}`), ...out.map((each) => `${named(each)} stands out`)];
  }, SIDEWAYS);
}

for (const [name, route] of Object.entries(ROUTES)) {
  test(`c20 ${name}: not wider than a phone, and accessible there`, async ({ yard, page, watch }) => {
    if (route.complains !== undefined) watch.expect(route.complains);
    await openRoute(page, route, await everything(yard));
    expect(await tooWide(page)).toEqual([]);
    // Among others: what is touched is at least 24 pixels in size, or as far from its neighbours.
    expect(await violations(page)).toEqual([]);
  });
}

/** Every control of a decision is large enough for a thumb. */
async function areLarge(controls: Locator): Promise<void> {
  await expect(controls.first()).toBeVisible();
  const small = await controls.evaluateAll((all) =>
    all.flatMap((each) => {
      const { width, height } = each.getBoundingClientRect();
      return Math.min(width, height) >= 44 ? [] : [`${each.textContent}: ${width} × ${height}`];
    }),
  );
  expect(small).toEqual([]);
}

test("c20 a decision is made on a phone", async ({ yard, page }) => {
  const id = await yard.start("asks-shell", "Check the prices");
  const asked = await yard.api.asked(id);
  await page.goto("/approvals");
  await page.locator(`a[href*="${asked.id}"]`).first().click();
  const effect = page.getByRole("main").getByRole("button", { name: /^Run shell/ });
  await effect.scrollIntoViewIfNeeded();
  await areLarge(page.locator(".decision .acts").getByRole("button"));
  await effect.click();
  await yard.api.until(id, "completed");
});

test("c20 the controls of a decision are 44 pixels in size: in a run, in the inbox, in a diff, and to reject", async ({ yard, page }) => {
  const { waiting, approval, review } = await everything(yard);
  const reject = page.getByRole("button", { name: words("approvals.reject") });
  for (const path of [`/runs/${waiting}`, `/approvals/${approval}`]) {
    await page.goto(path);
    await expect(page.getByRole("button", { name: /^Run shell/ })).toBeVisible();
    await areLarge(page.locator(".decision .acts").getByRole("button"));
    await areLarge(page.getByRole("link", { name: /^Review/ }));
    await areLarge(page.locator(".scope__seg label"));
    await reject.click();
    await areLarge(page.locator(".decision .acts").getByRole("button"));
  }
  await page.goto(`/runs/${review}/diff`);
  await areLarge(page.locator(".applybar .acts").getByRole("button"));
  await reject.click();
  await areLarge(page.getByRole("dialog").locator(".acts").getByRole("button"));
});

test("c20 a run's page on a phone has its state, its timeline and the decision", async ({ yard, page }) => {
  const id = await yard.start("asks-shell", "Check the prices");
  await yard.api.asked(id);
  const run = await RunPage.open(page, id);
  await run.shows("needs_approval");
  await expect(run.panel().getByRole("button", { name: /^Run shell/ })).toBeEnabled();
  // Once everything is drawn and the end is followed, and not only in the first frame.
  await expect(run.pill).toBeInViewport();
  await expect(run.head.locator("time").first()).toBeInViewport();
  const effect = run.panel().getByRole("button", { name: /^Run shell/ });
  await effect.scrollIntoViewIfNeeded();
  await effect.click();
  await run.shows("completed");
});

test("c20 the button of a long command holds all of its words, on a phone and on a desk", async ({ yard, page }) => {
  const asked = await yard.api.asked(await yard.start("asks-long", "Measure the berths"));
  for (const size of [{ width: 360, height: 740 }, { width: 1440, height: 900 }]) {
    await page.setViewportSize(size);
    for (const path of [`/runs/${asked.runId}`, `/approvals/${asked.id}`]) {
      await page.goto(path);
      const effect = page.getByRole("main").getByRole("button", { name: /^Run shell/ });
      await expect(effect).toBeEnabled();
      const [words, button] = await effect.evaluate((each) => {
        const text = document.createRange();
        text.selectNodeContents(each);
        return [text, each].map((of) => of.getBoundingClientRect().height);
      });
      expect(words, `${path} at ${size.width}`).toBeLessThanOrEqual(button ?? 0);
    }
  }
  await yard.api.through(asked.runId);
});

test("c20 twice as large is as usable", async ({ yard, page }) => {
  await page.setViewportSize({ width: 640, height: 400 });
  const { waiting } = await everything(yard);
  const run = await RunPage.open(page, waiting);
  await run.panel().getByRole("button", { name: /^Run shell/ }).scrollIntoViewIfNeeded();
  expect(await tooWide(page)).toEqual([]);
});

const BETWEEN = ["a run that waits", "a diff to decide on", "approvals", "runs"];

test("c20 between a phone and a desk nothing is wider than the window, and text has room", async ({ yard, page }) => {
  const all = await everything(yard);
  for (const width of [721, 768, 900, 1024, 1180]) {
    await page.setViewportSize({ width, height: 800 });
    for (const name of BETWEEN) {
      const route = ROUTES[name];
      if (route === undefined) throw new Error(`there is no page ${name}`);
      await openRoute(page, route, all);
      expect(await tooWide(page), `${name} at ${width}`).toEqual([]);
      const heading = page.getByRole("main").getByRole("heading", { level: 1 });
      expect((await heading.boundingBox())?.width, `the title of ${name} at ${width}`).toBeGreaterThan(30);
    }
  }
});
