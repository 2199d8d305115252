// Every page, with content, and every window over a page, in both themes and both languages: nothing for axe to find, nothing that the
// Content-Security-Policy refuses, and no request to another host. The last two are looked at in every test; here on every page.
// clause: C20
// clause: C23
import type { BrowserContext, Page } from "@playwright/test";
import { violations } from "../support/accessibility.ts";
import { type Everything, everything } from "../support/everything.ts";
import { openRoute, type Route, ROUTES, type Say } from "../support/routes.ts";
import { expect, test } from "../support/test.ts";
import { type Language, LANGUAGES, words } from "../support/words.ts";

const THEMES = ["light", "dark", "contrast"];

/** Opens a page in a language. */
async function openIn(language: Language, context: BrowserContext, page: Page, route: Route, all: Everything): Promise<void> {
  await context.addCookies([{ name: "runyard_language", value: language, domain: "127.0.0.1", path: "/" }]);
  await openRoute(page, route, all, language);
  await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", language === "zh" ? /^zh/ : "en");
}

async function accessibleInThemes(page: Page, what: string): Promise<void> {
  for (const theme of THEMES) {
    await page.evaluate((chosen) => (document.documentElement.dataset["theme"] = chosen), theme);
    expect(await violations(page), `${what}, ${theme}`).toEqual([]);
  }
}

for (const [name, route] of Object.entries(ROUTES)) {
  test(`c20 ${name}: accessible in both themes and languages`, async ({ yard, context, page, watch }) => {
    if (route.complains !== undefined) watch.expect(route.complains);
    const all = await everything(yard);
    for (const language of LANGUAGES) {
      await openIn(language, context, page, route, all);
      await accessibleInThemes(page, `${name}, ${language}`);
    }
  });
}

interface Over {
  /** The page under it, by its name. */
  at: string;
  open: (page: Page, say: Say, context: BrowserContext) => Promise<void>;
  width?: number;
  complains?: RegExp;
}

/** Presses the keys, and waits for the window of the title. */
const presses = (keys: string, title: string): Over["open"] => async (page, say) => {
  await page.keyboard.press(keys);
  await expect(page.getByRole("dialog", { name: say(title) })).toBeVisible();
};

const searches = presses("Control+k", "common.palette.title");

/** Clicks the button of the name, and waits for the window of the title. */
const asks = (button: string, title: string): Over["open"] => async (page, say) => {
  await page.getByRole("main").getByRole("button", { name: say(button), exact: true }).first().click();
  await expect(page.getByRole("dialog", { name: say(title) })).toBeVisible();
};

const rejects: Over["open"] = async (page, say) => {
  const panel = page.getByRole("region", { name: say("approvals.panel") });
  await panel.getByRole("button", { name: say("approvals.reject") }).click();
  await expect(panel.getByRole("textbox", { name: say("approvals.reason") })).toBeFocused();
};

/** Every window over a page, and what opens inside of one. */
const WINDOWS: Record<string, Over> = {
  "the list of keys": { at: "a run that runs", open: presses("?", "common.keys.title") },
  "the search": {
    at: "runs",
    open: async (page, say, context) => {
      await searches(page, say, context);
      await expect(page.getByRole("option", { name: say("common.nav.audit") })).toBeVisible();
    },
  },
  "the search that finds nothing": {
    at: "runs",
    open: async (page, say, context) => {
      await searches(page, say, context);
      await page.getByRole("combobox").fill("nothing-like-this");
      await expect(page.getByText(say("common.palette.none"))).toBeVisible();
    },
  },
  "the navigation of a phone": {
    at: "runs",
    width: 360,
    open: async (page, say) => {
      await page.getByRole("button", { name: say("common.menu") }).click();
      await expect(page.getByRole("dialog", { name: say("common.mainNav") }).getByRole("link", { name: say("common.nav.audit") })).toBeVisible();
    },
  },
  "a menu of choices": {
    at: "runs",
    open: async (page, say) => {
      await page.getByRole("search").getByRole("button", { name: say("runs.filter.state") }).click();
      await expect(page.getByRole("menuitemcheckbox", { name: say("common.state.failed") })).toBeVisible();
    },
  },
  "a menu of deeds": {
    at: "a run that runs",
    open: async (page, say) => {
      await page.getByRole("button", { name: say("run.moreActions") }).click();
      await expect(page.getByRole("menuitem", { name: say("run.copyLink") })).toBeVisible();
    },
  },
  "a message to the agent": { at: "a run that runs", open: asks("run.messageAgent", "run.messageAgent") },
  "cancelling a run": { at: "a run that runs", open: asks("run.cancelRun", "run.cancelTitle") },
  "rejecting with a reason": { at: "a run that waits", open: rejects },
  "rejecting a diff": { at: "a diff to decide on", open: asks("approvals.reject", "approvals.reject") },
  "rejecting a question": { at: "a run that asks a question", open: rejects },
  "removing a rule": { at: "policy", open: asks("policy.effect.removeAsk", "policy.removeTitle") },
  "closing a session": { at: "edges", open: asks("system.effect.closeSessionAsk", "system.sessions.closeTitle") },
  "a session that has ended": {
    at: "runs",
    complains: /status of 401/,
    open: async (page, say, context) => {
      await context.clearCookies({ name: /^runyard_session/ });
      // The page may have asked for something by itself meanwhile, and the dialog be there already.
      await page.getByRole("navigation", { name: say("common.mainNav"), includeHidden: true }).getByRole("link", { name: say("common.nav.agents"), includeHidden: true }).dispatchEvent("click");
      const ended = page.getByRole("dialog", { name: say("common.session.ended") });
      await expect(ended.getByRole("textbox", { name: say("login.paste") })).toBeFocused();
    },
  },
};

for (const [name, over] of Object.entries(WINDOWS)) {
  test(`c20 ${name}: accessible in both themes and languages`, async ({ yard, context, page, watch }) => {
    const route = ROUTES[over.at];
    if (route === undefined) throw new Error(`there is no page ${over.at}`);
    if (over.complains !== undefined) watch.expect(over.complains);
    const all = await everything(yard);
    if (over.width !== undefined) await page.setViewportSize({ width: over.width, height: 740 });
    const cookies = await context.cookies();
    for (const language of LANGUAGES) {
      await context.addCookies(cookies);
      await openIn(language, context, page, route, all);
      await over.open(page, (key, values) => words(key, values, language), context);
      await accessibleInThemes(page, `${name}, ${language}`);
    }
  });
}
