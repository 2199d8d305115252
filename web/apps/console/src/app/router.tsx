// The addresses. What is chosen, filtered and opened is in them; theme and language are not.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { RunsPage } from "../pages/runs";
import { boot } from "./boot";
import { PageError } from "./page-error";
import { NotFound } from "./not-found";
import { Root } from "./frame";

/** Search parameters are plain strings: an address can be read and typed. */
export type Search<K extends string> = { [name in K]?: string };

function only<K extends string>(...names: readonly K[]): (given: Record<string, unknown>) => Search<K> {
  return (given) => {
    const kept: Search<K> = {};
    for (const name of names) {
      const value = given[name];
      if (typeof value === "string" && value !== "") kept[name] = value;
    }
    return kept;
  };
}

const root = createRootRoute({ component: Root, notFoundComponent: NotFound, errorComponent: PageError });
const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: boot().hub ? "/runs" : "/dev", replace: true });
  },
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: only("state", "workspace", "agent", "since", "text", "view"),
  component: RunsPage,
});
const newRun = createRoute({
  getParentRoute: () => root,
  path: "/runs/new",
  validateSearch: only("from", "mode", "agent", "workspace"),
  component: lazyRouteComponent(() => import("../pages/runs/new"), "NewRunPage"),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$id",
  validateSearch: only("sel", "view", "file", "text"),
  component: lazyRouteComponent(() => import("../pages/run"), "RunPage"),
});
// The run's page itself shows its parts: what they have in common is never mounted again.
const timeline = createRoute({ getParentRoute: () => run, path: "/" });
const diff = createRoute({ getParentRoute: () => run, path: "diff" });
const artifacts = createRoute({ getParentRoute: () => run, path: "artifacts" });
const artifact = createRoute({ getParentRoute: () => run, path: "artifacts/$artifact" });
const transcript = createRoute({ getParentRoute: () => run, path: "transcript" });
const runAudit = createRoute({ getParentRoute: () => run, path: "audit" });
const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  validateSearch: only("view", "text"),
  component: lazyRouteComponent(() => import("../pages/approvals"), "ApprovalsPage"),
});
const approval = createRoute({ getParentRoute: () => approvals, path: "$id" });
const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  component: lazyRouteComponent(() => import("../pages/system"), "AgentsPage"),
});
const edges = createRoute({
  getParentRoute: () => root,
  path: "/edges",
  component: lazyRouteComponent(() => import("../pages/system"), "EdgesPage"),
});
const policy = createRoute({
  getParentRoute: () => root,
  path: "/policy",
  component: lazyRouteComponent(() => import("../pages/policy"), "PolicyPage"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: only("type", "actor", "sel"),
  component: lazyRouteComponent(() => import("../pages/audit"), "AuditPage"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("./settings"), "SettingsPage"),
});
const dev = createRoute({
  getParentRoute: () => root,
  path: "/dev",
  validateSearch: only("text"),
  component: lazyRouteComponent(() => import("../pages/dev"), "DevPage"),
});
const devAction = createRoute({ getParentRoute: () => dev, path: "$action" });
const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: only("next"),
  component: lazyRouteComponent(() => import("../pages/login"), "LoginPage"),
});

const routeTree = root.addChildren([
  home,
  runs,
  newRun,
  run.addChildren([timeline, diff, artifacts, artifact, transcript, runAudit]),
  approvals.addChildren([approval]),
  agents,
  edges,
  policy,
  audit,
  settings,
  dev.addChildren([devAction]),
  login,
]);

function stringify(search: Record<string, unknown>): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) if (typeof value === "string" && value !== "") words.set(name, value);
  const text = words.toString().replaceAll("%2C", ",");
  return text === "" ? "" : `?${text}`;
}

/** The router of the page. */
export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultErrorComponent: PageError,
  defaultNotFoundComponent: NotFound,
  // The lists keep their own places; the frame itself does not scroll on a wide window.
  scrollRestoration: true,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: stringify,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
