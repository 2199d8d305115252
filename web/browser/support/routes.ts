// The addresses of the console, for what has to hold on every page, each with what is there once it is drawn.
import { expect, type Locator, type Page } from "@playwright/test";
import type { Everything } from "./everything.ts";
import { type Language, words } from "./words.ts";

/** The text of a key in the language of the page. */
export type Say = (key: string, values?: Record<string, string | number>) => string;

/** An address, and what stands there when all of it is. */
export interface Route {
  path: (all: Everything) => string;
  /** What comes last: neither the frame nor what is there while it is still read. */
  shows: (page: Page, say: Say, all: Everything) => Locator[];
  /** What the browser complains of there, and only there. */
  complains?: RegExp;
}

const COMMAND = /sh tests\/run\.sh/;
/** A page that an agent made is shown without its scripts and styles, and the browser says so. */
const CONFINED = /blob:http/;
const NOTHING_THERE = /status of 404/;

const rows = (page: Page): Locator => page.getByRole("feed").getByRole("article");
const heading = (page: Page, name: string): Locator => page.getByRole("heading", { name });
const whole = (page: Page): Locator => page.locator(".runpage:not([data-reading])");
const state = (page: Page, name: string): Locator => page.locator(`header .pill[data-state="${name}"]`);

/** Every address of the console. */
export const ROUTES: Record<string, Route> = {
  login: { path: () => "/login", shows: (page, say) => [page.getByRole("textbox", { name: say("login.paste") })] },
  runs: {
    path: () => "/runs",
    shows: (page, say) => [page.locator("[data-run]"), page.getByRole("search", { name: say("runs.filters") })],
  },
  "runs that match nothing": {
    path: () => "/runs?text=nothing-like-this",
    shows: (page, say) => [heading(page, say("runs.none.title")), page.getByRole("search", { name: say("runs.filters") })],
  },
  "new run": {
    path: () => "/runs/new",
    shows: (page, say) => ["runs.create.agent", "runs.create.workspace"].map((key) => page.getByRole("combobox", { name: say(key) })),
  },
  "a run that is over": {
    path: ({ story }) => `/runs/${story}`,
    shows: (page, say) => [whole(page), state(page, "completed"), rows(page), page.getByRole("list", { name: say("run.whatIsLeft") })],
  },
  "a run with a chosen call": {
    path: ({ story, call }) => `/runs/${story}?sel=${call}`,
    shows: (page, say) => [whole(page), rows(page), page.getByRole("region", { name: say("run.detail") }).getByText("not ok 7")],
  },
  "a run in full": {
    path: ({ story }) => `/runs/${story}?view=full`,
    shows: (page, say) => [whole(page), rows(page), page.getByRole("list", { name: say("run.whatIsLeft") })],
  },
  "a run as JSON": {
    path: ({ story }) => `/runs/${story}?view=json`,
    shows: (page) => [whole(page), rows(page).getByText("run.completed", { exact: true })],
  },
  "a run that waits": {
    path: ({ waiting }) => `/runs/${waiting}`,
    shows: (page, say) => [whole(page), rows(page), page.getByRole("region", { name: say("approvals.panel") }).getByRole("button", { name: COMMAND })],
  },
  "a run that asks a question": {
    path: ({ question }) => `/runs/${question}`,
    shows: (page, say) => [whole(page), page.getByRole("region", { name: say("approvals.panel") }).getByLabel(/^nights/)],
  },
  "a run that failed": {
    path: ({ failed }) => `/runs/${failed}`,
    shows: (page, say) => [whole(page), rows(page), page.getByRole("region", { name: say("common.failure") })],
  },
  "a run that runs": {
    path: ({ running }) => `/runs/${running}`,
    shows: (page) => [whole(page), state(page, "running"), rows(page).getByText("I look at the berths first.")],
  },
  "a run that was cancelled": {
    path: ({ cancelled }) => `/runs/${cancelled}`,
    shows: (page, say) => [whole(page), page.getByRole("region", { name: say("run.outcomeLabel") })],
  },
  "a diff to decide on": {
    path: ({ review }) => `/runs/${review}/diff`,
    shows: (page) => [page.getByRole("table").getByText("A begun metre counts whole.")],
  },
  "a diff that was applied": {
    path: ({ story }) => `/runs/${story}/diff`,
    shows: (page) => [page.getByRole("table").getByText("Releasing a berth says whether there was one.")],
  },
  artifacts: {
    path: ({ story }) => `/runs/${story}/artifacts`,
    shows: (page, say) => [page.getByRole("navigation", { name: say("artifacts.list") }).getByText("notes.md"), page.locator(".viewer h2")],
  },
  "an artifact": {
    path: ({ story, artifact }) => `/runs/${story}/artifacts/${artifact}`,
    shows: (page) => [page.locator("iframe").contentFrame().getByRole("heading", { name: "Berths" })],
    complains: CONFINED,
  },
  transcript: {
    path: ({ story }) => `/runs/${story}/transcript`,
    shows: (page) => [page.getByText("All seven cases pass.")],
  },
  "audit of a run": {
    path: ({ story }) => `/runs/${story}/audit`,
    shows: (page, say) => [page.getByRole("table", { name: say("audit.tab.entries") }).getByText(say("audit.types.audit_decision"), { exact: true })],
  },
  approvals: {
    path: () => "/approvals",
    shows: (page, _say, { approval }) => [page.locator(`[data-approval="${approval}"]`)],
  },
  "an approval": {
    path: ({ approval }) => `/approvals/${approval}`,
    shows: (page, _say, { approval }) => [page.locator(`section[data-approval="${approval}"]`).getByRole("button", { name: COMMAND })],
  },
  "no such approval": {
    path: () => `/approvals/apr_${"0".repeat(32)}`,
    shows: (page, say) => [heading(page, say("approvals.gone"))],
    complains: NOTHING_THERE,
  },
  agents: {
    path: () => "/agents",
    shows: (page, say) => [page.getByRole("button", { name: say("system.effect.check", { profile: "waits" }) })],
  },
  edges: {
    path: () => "/edges",
    shows: (page, say) => [page.getByRole("button", { name: say("system.effect.closeSessionAsk") })],
  },
  policy: {
    path: () => "/policy",
    shows: (page, say) => [page.getByText("migrations/**"), page.getByRole("complementary", { name: say("policy.add.title") })],
  },
  audit: {
    path: () => "/audit",
    shows: (page, say) => [page.getByRole("table", { name: say("audit.title") }).getByRole("row").nth(1)],
  },
  "an entry of the audit": {
    path: () => "/audit?sel=1",
    shows: (page, say) => [page.getByRole("complementary", { name: say("audit.entry", { sequence: 1 }) }).getByRole("group", { name: say("audit.detail") })],
  },
  settings: { path: () => "/settings", shows: (page, say) => [page.getByRole("button", { name: say("common.settings.logOut") })] },
  dev: { path: () => "/dev", shows: (page) => [page.locator('[data-name="run_create"]')] },
  "an action": { path: () => "/dev/run_create", shows: (page) => [page.locator("form [data-call]")] },
  "not found": {
    path: () => `/runs/run_${"0".repeat(32)}`,
    shows: (page, say) => [heading(page, say("run.refusedTitle"))],
    complains: NOTHING_THERE,
  },
  "no such page": {
    path: ({ story }) => `/runs/${story}/nowhere`,
    shows: (page, say) => [heading(page, say("common.notFound.heading"))],
    complains: NOTHING_THERE,
  },
};

/** Opens an address and waits until what it is about is drawn. */
export async function openRoute(page: Page, route: Route, all: Everything, language: Language = "en"): Promise<void> {
  await page.goto(route.path(all));
  const say: Say = (key, values) => words(key, values, language);
  for (const shown of route.shows(page, say, all)) await expect(shown.first()).toBeVisible();
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
}
