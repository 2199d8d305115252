// Every page, with content, in both themes and both languages: nothing for axe to find, nothing that the Content-Security-Policy refuses,
// and no request to another host. The last two are looked at in every test; here on every page.
// clause: C20
// clause: C23
import { violations } from "../support/accessibility.ts";
import { type Everything, everything } from "../support/everything.ts";
import { expect, test } from "../support/test.ts";
import { LANGUAGES } from "../support/words.ts";

/** Every address of the console. */
const ROUTES: Record<string, (all: Everything) => string> = {
  runs: () => "/runs",
  "runs that match nothing": () => "/runs?text=nothing-like-this",
  "new run": () => "/runs/new",
  "a run that is over": ({ story }) => `/runs/${story}`,
  "a run in full": ({ story }) => `/runs/${story}?view=full`,
  "a run as JSON": ({ story }) => `/runs/${story}?view=json`,
  "a run that waits": ({ waiting }) => `/runs/${waiting}`,
  "a run that asks a question": ({ question }) => `/runs/${question}`,
  "a run that failed": ({ failed }) => `/runs/${failed}`,
  "a run that runs": ({ running }) => `/runs/${running}`,
  "a run that was cancelled": ({ cancelled }) => `/runs/${cancelled}`,
  "a diff to decide on": ({ review }) => `/runs/${review}/diff`,
  "a diff that was applied": ({ story }) => `/runs/${story}/diff`,
  artifacts: ({ story }) => `/runs/${story}/artifacts`,
  "an artifact": ({ story, artifact }) => `/runs/${story}/artifacts/${artifact}`,
  transcript: ({ story }) => `/runs/${story}/transcript`,
  "audit of a run": ({ story }) => `/runs/${story}/audit`,
  approvals: () => "/approvals",
  "an approval": ({ approval }) => `/approvals/${approval}`,
  agents: () => "/agents",
  edges: () => "/edges",
  policy: () => "/policy",
  audit: () => "/audit",
  settings: () => "/settings",
  dev: () => "/dev",
  "an action": () => "/dev/run_create",
  "not found": () => "/runs/run_00000000000000000000000000000000",
  "no such page": ({ story }) => `/runs/${story}/nowhere`,
};

for (const [name, route] of Object.entries(ROUTES)) {
  test(`c20 ${name}: accessible in both themes and languages`, async ({ yard, context, page, watch }) => {
    watch.expect(/status of 404/);
    // A page that an agent made is shown without its scripts and styles, and the browser says so.
    watch.expect(/blob:http/);
    const address = route(await everything(yard));
    for (const language of LANGUAGES) {
      await context.addCookies([{ name: "runyard_language", value: language, domain: "127.0.0.1", path: "/" }]);
      await page.goto(address);
      await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
      await expect(page.locator("html")).toHaveAttribute("lang", language === "zh" ? /^zh/ : "en");
      await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
      for (const theme of ["light", "dark", "contrast"]) {
        await page.evaluate((chosen) => (document.documentElement.dataset["theme"] = chosen), theme);
        expect(await violations(page), `${address} ${language} ${theme}`).toEqual([]);
      }
    }
  });
}
