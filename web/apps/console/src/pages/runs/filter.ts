// Which runs are shown. All of it is in the address, as plain words.
import type { RunFilter, RunState } from "@runyard/react";
import { taskTitle, type TaskLike } from "../../app/run-title";
import { STATES } from "../../ui/state";

/** What the filters look at in a run. */
export interface Filterable {
  id: string;
  state: string;
  task: TaskLike;
  agentId: string;
  workspace: { id: string; label: string };
  createdAt: string;
  lastEventAt: string;
}

/** The four views over the list. */
export const VIEWS = ["all", "needs", "active", "ended"] as const;
/** One of them. */
export type View = (typeof VIEWS)[number];
/** How far back. */
export const SINCE = ["1h", "today", "7d", "30d"] as const;
/** One of them. */
export type Since = (typeof SINCE)[number];

/** The address's words. */
export interface RunsSearch {
  state?: string;
  workspace?: string;
  agent?: string;
  since?: string;
  text?: string;
  view?: string;
}

/** The filters, read. */
export interface Filter {
  states: ReadonlySet<RunState>;
  workspace: string | undefined;
  agent: string | undefined;
  since: Since | undefined;
  text: string;
  view: View;
}

const ENDED: ReadonlySet<string> = new Set<RunState>(["completed", "failed", "cancelled"]);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Whether a run is over. */
export function hasEnded(state: string): boolean {
  return ENDED.has(state);
}

/** Reads the address. What it does not know it leaves out. */
export function readFilter(search: RunsSearch): Filter {
  const named = new Set(search.state?.split(",") ?? []);
  return {
    states: new Set(STATES.filter((state) => named.has(state))),
    workspace: search.workspace,
    agent: search.agent,
    since: SINCE.find((since) => since === search.since),
    text: search.text?.trim().toLowerCase() ?? "",
    view: VIEWS.find((view) => view === search.view) ?? "all",
  };
}

/** Whether anything but the view narrows the list. */
export function isNarrowed(filter: Filter): boolean {
  const { states, workspace, agent, since, text } = filter;
  return states.size > 0 || text !== "" || [workspace, agent, since].some((one) => one !== undefined);
}

/** Whether a run belongs to a view. */
export function inView(run: { state: string }, view: View): boolean {
  if (view === "needs") return run.state === "needs_approval";
  if (view === "all") return true;
  return hasEnded(run.state) === (view === "ended");
}

/** The beginning of the time that is looked at. */
export function sinceTime(since: Since, now: number): number {
  if (since === "today") return new Date(now).setHours(0, 0, 0, 0);
  return now - { "1h": HOUR_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS }[since];
}

/** Whether a run passes the filters, whatever the view. */
export function matches(run: Filterable, filter: Filter, now: number): boolean {
  if (filter.states.size > 0 && !STATES.some((state) => state === run.state && filter.states.has(state))) return false;
  if (filter.workspace !== undefined && run.workspace.label !== filter.workspace && run.workspace.id !== filter.workspace) return false;
  if (filter.agent !== undefined && run.agentId !== filter.agent) return false;
  if (filter.since !== undefined && Date.parse(run.createdAt) < sinceTime(filter.since, now)) return false;
  if (filter.text === "") return true;
  const full = typeof run.task === "string" ? run.task : taskTitle(run.task);
  return [run.id, full, run.workspace.label, run.agentId].some((text) => text.toLowerCase().includes(filter.text));
}

/** What the hub and the client are asked for, or nothing where no run can match. */
export function queryOf(filter: Filter, now: number): RunFilter | undefined {
  const states = STATES.filter((state) => inView({ state }, filter.view) && (filter.states.size === 0 || filter.states.has(state)));
  if (states.length === 0) return undefined;
  return {
    ...(states.length < STATES.length && { state: states }),
    ...(filter.workspace !== undefined && { workspace: filter.workspace }),
    ...(filter.agent !== undefined && { agent: filter.agent }),
    ...(filter.text !== "" && { text: filter.text }),
    // The same question for a whole minute: the answer is shared and kept.
    ...(filter.since !== undefined && { since: new Date(sinceTime(filter.since, now - (now % MINUTE_MS))).toISOString() }),
  };
}
