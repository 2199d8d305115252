// The list of runs: what it shows is in its address, it stays current by itself, and where it is empty it says what comes next.
// clause: C20
import { everything } from "../support/everything.ts";
import { expect, test } from "../support/test.ts";
import { contextOf, logIn } from "../support/session.ts";
import { Yard } from "../support/yard.ts";

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

test("c20 the list is current without a reload", async ({ yard, page }) => {
  await page.goto("/runs");
  await expect(page.getByRole("table")).toBeVisible();
  const id = await yard.start("waits", "Appear by yourself");
  const row = page.locator(`[data-run="${id}"]`);
  await expect(row).toHaveAttribute("data-state", "running");
  await yard.api.steer(id, "go on");
  await expect(row).toHaveAttribute("data-state", "completed");
});

test("c20 an empty hub says what to do next", async ({ browser }) => {
  const yard = await Yard.start();
  const context = await contextOf(browser, await logIn(await yard.link()), { locale: "en-GB", baseURL: yard.hub.url });
  try {
    const page = await context.newPage();
    await page.goto("/runs");
    await expect(page.getByRole("main")).toContainText("runyard run");
    await page.goto("/approvals");
    await expect(page.getByRole("main")).toContainText("runyard");
  } finally {
    await context.close();
    await yard.hub.remove();
  }
});
