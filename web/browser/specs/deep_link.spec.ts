// Every event has an address.
// clause: C08
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";

test("c08 the address of event 4,321 of 5,000 opens the timeline there, and marks it", async ({ yard, page }) => {
  const id = await yard.startLong("five-thousand");
  await yard.api.until(id, "completed");
  expect((await yard.api.events(id)).length).toBeGreaterThan(5000);
  const run = await RunPage.open(page, id, { part: "#seq=4321" });
  const row = run.feed.locator('[data-seq="4321"]');
  await expect(row).toBeInViewport();
  await expect(row).toHaveAttribute("aria-current", "true");
  await page.reload();
  await expect(row).toBeInViewport();
  await run.go("?view=json#seq=17");
  await expect(run.feed.locator('[data-seq="17"]')).toBeInViewport();
});

test("c08 the address of an event is copied from its number", async ({ yard, page }) => {
  const id = await yard.start("story");
  await yard.api.through(id);
  const run = await RunPage.open(page, id);
  // While the end is followed the rows that are drawn are not yet those that stay.
  await expect(run.rows.last()).toBeInViewport();
  const name = await run.rows.last().getByRole("link", { name: /^#\d+$/ }).textContent();
  await run.feed.getByRole("link", { name: name ?? "", exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`#seq=${name?.slice(1)}$`));
});
