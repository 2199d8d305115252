// Nothing jumps after a page has loaded: what comes later has its place already, at every width.
// clause: C20
import { setTimeout } from "node:timers/promises";
import { everything } from "../support/everything.ts";
import { openRoute, ROUTES } from "../support/routes.ts";
import { seenMoving, untilStill, watchStillness } from "../support/stillness.ts";
import { expect, test } from "../support/test.ts";

/** What a browser calls good is 0.1. */
const SHIFT_MAX = 0.05;
/** So much later than everything else a log comes. */
const LATER_MS = 1_000;
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1000, height: 800 },
  { width: 390, height: 844 },
];

for (const viewport of SIZES) {
  test.describe(`at ${viewport.width} px`, () => {
    test.use({ viewport });
    test(`c20 no page jumps while it loads, at ${viewport.width} px`, async ({ yard, page, watch }) => {
      for (const { complains } of Object.values(ROUTES)) if (complains !== undefined) watch.expect(complains);
      const all = await everything(yard);
      await watchStillness(page);
      const jumps: string[] = [];
      for (const [name, route] of Object.entries(ROUTES)) {
        await openRoute(page, route, all);
        await untilStill(page);
        const { shift, sources } = await seenMoving(page);
        if (shift >= SHIFT_MAX) jumps.push(`${name}: ${shift.toFixed(3)}\n  ${sources.join("\n  ")}`);
      }
      expect(jumps.join("\n")).toBe("");
    });
    test(`c20 no page of a run jumps when its log comes last, at ${viewport.width} px`, async ({ yard, page, watch }) => {
      for (const { complains } of Object.values(ROUTES)) if (complains !== undefined) watch.expect(complains);
      const all = await everything(yard);
      await watchStillness(page);
      await page.route(/\/runs\/[^/]+\/stream/, async (route) => {
        await setTimeout(LATER_MS);
        // Its page may be left by then.
        await route.continue().catch(() => undefined);
      });
      const jumps: string[] = [];
      for (const [name, route] of Object.entries(ROUTES)) {
        if (!route.path(all).startsWith("/runs/run_")) continue;
        await openRoute(page, route, all);
        await untilStill(page);
        const { shift, sources } = await seenMoving(page);
        if (shift >= SHIFT_MAX) jumps.push(`${name}: ${shift.toFixed(3)}\n  ${sources.join("\n  ")}`);
      }
      expect(jumps.join("\n")).toBe("");
    });
  });
}
