// The app window that `runyard open` starts shows what a tab shows.
// clause: C20
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "@playwright/test";
import { everything } from "../support/everything.ts";
import { steady, untilStill } from "../support/stillness.ts";
import { expect, test } from "../support/test.ts";

test("c20 an app window is the same as a tab", async ({ yard, page, launchOptions }) => {
  const { story, review } = await everything(yard);
  const profile = await mkdtemp(join(tmpdir(), "runyard-window-"));
  const { args = [], ...options } = launchOptions;
  const link = await yard.link();
  const window = await chromium.launchPersistentContext(profile, { ...options, args: [...args, `--app=${link}`], viewport: page.viewportSize(), locale: "en-GB" });
  try {
    const [app = await window.waitForEvent("page")] = window.pages();
    // The link names where it leads, too.
    await app.waitForURL(({ pathname }) => pathname === "/runs");
    for (const address of [`/runs/${story}`, `/runs/${review}/diff`, "/approvals", "/settings"]) {
      await page.goto(address);
      await app.goto(yard.hub.url + address);
      for (const shown of [page, app]) {
        await expect(shown.getByRole("heading", { level: 1 }).first()).toBeVisible();
        await untilStill(shown);
      }
      // Each reads on its own, so one may be there before the other.
      const tree = async (shown: Page): Promise<string> => steady(await shown.locator("body").ariaSnapshot());
      await expect(async () => expect(await tree(app)).toBe(await tree(page))).toPass();
      const [tab, own] = await Promise.all([page, app].map((shown) => shown.getByRole("main").boundingBox()));
      expect(own).toEqual(tab);
    }
  } finally {
    await window.close();
    await rm(profile, { recursive: true, force: true });
  }
});
