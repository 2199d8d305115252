// What a run changed: looked at file by file and hunk by hunk, commented on, applied in part, and taken back.
// clause: C13
// clause: C22
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { FILES } from "../support/repository.ts";
import { RunPage } from "../support/run-page.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";
import type { Yard } from "../support/yard.ts";

/** A run that waits for its changes to be applied, in a repository of its own. */
async function changed(yard: Yard): Promise<{ id: string; folder: string; read: (path: string) => Promise<string> }> {
  const folder = await yard.repository();
  const id = await yard.start("edits", "Count begun metres whole", { workspace: folder });
  await yard.api.asked(id);
  return { id, folder, read: (path) => readFile(join(folder, path), "utf8").catch(() => "") };
}

/** The choice of one hunk. */
const hunk = (page: Page, number: number, path: string) => page.getByRole("radiogroup", { name: words("diff.hunkLabel", { number, path }) });

test("c22 the chosen hunks and nothing else reach the files, and are taken back byte for byte", async ({ yard, page }) => {
  const { id, read } = await changed(yard);
  const run = await RunPage.open(page, id, { part: "/diff" });
  await expect(page.getByText("docs/changes.md").first()).toBeVisible();
  await hunk(page, 2, "src/booking.js").getByText(words("diff.leaveOut")).click();
  await page.getByRole("complementary", { name: words("diff.files") }).getByRole("checkbox", { name: words("diff.take", { path: "docs/changes.md" }) }).uncheck({ force: true });
  expect(await read("src/booking.js"), "choosing changes nothing").toBe(FILES["src/booking.js"]);
  await page.getByRole("button", { name: /^Apply 2 files/ }).click();
  await run.shows("completed");
  const booking = await read("src/booking.js");
  expect(booking).toContain("!berth.ship");
  expect(booking).toContain("const metres");
  expect(booking, "the hunk that was left out").not.toContain("return false");
  expect(await read("docs/prices.md")).toContain("A begun metre counts whole.");
  expect(await read("docs/changes.md")).toBe("");
  // Everywhere it is told as what it was: a part.
  await run.go();
  await expect(run.feed).toContainText(words("run.applyChosen", { files: "2 files", of: 3 }));
  const end = page.getByRole("region", { name: words("run.outcomeLabel") });
  await expect(end).toContainText(words("run.completedPart"));
  await expect(end).toContainText(words("run.appliedPart"));
  await run.go("/diff");

  await page.getByRole("button", { name: /^Undo/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: /takes back/ }).click();
  await page.getByRole("link", { name: words("diff.start.open") }).click();
  await page.waitForURL((url) => !url.pathname.includes(id) && url.pathname.startsWith("/runs/run_"));
  const undoing = new RunPage(page, /run_[0-9a-z]+/.exec(page.url())?.[0] ?? "");
  await page.getByRole("main").getByRole("button", { name: /^Take back 2 files/ }).click();
  await undoing.shows("completed");
  expect(await read("src/booking.js")).toBe(FILES["src/booking.js"]);
  expect(await read("docs/prices.md")).toBe(FILES["docs/prices.md"]);

  // The run that applied them has ended and records nothing more; its page says all the same that they are gone.
  await RunPage.open(page, id, { part: "/diff" });
  await expect(page.locator("[data-apply-status]")).toHaveText(new RegExp(`^${words("diff.status.undone")}`));
  await expect(page.getByText(words("diff.over.undone"))).toBeVisible();
  await run.go();
  await expect(end).toContainText(words("run.applyStatus.undone"));
  await run.go("/diff");
  await expect(page.getByRole("button", { name: /^Undo/ })).toHaveCount(0);
});

test("c22 a comment on a line goes back to the agent, which does better", async ({ yard, page }) => {
  const { id } = await changed(yard);
  const run = await RunPage.open(page, id, { part: "/diff" });
  const line = page.getByRole("row").filter({ hasText: "Releasing a berth says whether there was one." }).first();
  await line.hover();
  await line.getByRole("button", { name: /^Comment on/ }).first().click();
  await page.getByRole("textbox", { name: words("diff.commentText") }).fill("Leave this one out of the list.");
  await page.getByRole("button", { name: words("diff.commentSave") }).click();
  await page.getByRole("button", { name: words("diff.effect.sendCommentOne") }).click();
  const again = page.getByRole("dialog").getByRole("button", { name: words("diff.effect.sendCommentOne") });
  if (await again.isVisible()) await again.click();
  await expect.poll(async () => (await yard.api.events(id)).filter((event) => event.type === "run.approval.requested").length).toBe(2);
  const told = (await yard.api.events(id)).find((event) => event.type === "run.command.received");
  expect(String(told?.payload["text"])).toContain("docs/changes.md:4: Leave this one out of the list.");
  await expect(page.getByText("Releasing a berth says whether there was one.")).toHaveCount(0);
  await run.shows("needs_approval");
  // What is decided on now is there to be looked at, all of it, without leaving the page.
  await expect(page.getByText(words("diff.anewPlain"))).toBeVisible();
  for (const text of ["A berth that is taken is not given away again.", "A begun metre counts whole.", "!berth.ship"]) {
    await expect(page.locator(".diffs").getByText(text).first()).toBeVisible();
  }
  await expect(page.getByText(words("diff.loadingFile"))).toHaveCount(0);
});

test("c13 where the person's own file changed in the same place, nothing is written and the run says so", async ({ yard, page }) => {
  const { id, folder, read } = await changed(yard);
  const mine = (FILES["docs/prices.md"] ?? "").replace("Two per metre", "Three per metre");
  await writeFile(join(folder, "docs/prices.md"), mine);
  const run = await RunPage.open(page, id);
  await run.panel().getByRole("button", { name: /^Apply 3 files/ }).click();
  await run.shows("failed");
  await expect(run.failure).toHaveAttribute("data-code", "CONFLICT");
  await expect(run.failure).toContainText("docs/prices.md");
  expect(await read("docs/prices.md")).toBe(mine);
  expect(await read("src/booking.js")).toBe(FILES["src/booking.js"]);
});

test("c22 a large file is folded, and shown when somebody wants it", async ({ yard, page }) => {
  const folder = await yard.repository();
  const id = await yard.start("rewrites", "Shift the tides", { workspace: folder });
  const asked = await yard.api.asked(id);
  await yard.api.approve(asked);
  await yard.api.asked(id, asked.id);
  await RunPage.open(page, id, { part: "/diff" });
  await expect(page.getByText(/changed lines are folded/)).toBeVisible();
  expect(await page.getByRole("main").locator("*").count()).toBeLessThan(3000);
  await page.getByRole("button", { name: /^Show \d+ lines/ }).first().click();
  await expect(page.getByText("2026-01-01,0,0").first()).toBeVisible();
});
