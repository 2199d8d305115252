// Where a run's time goes.

import { TERMINAL_STATES, type RunState } from "../generated/lifecycle.js";
import type { RunView } from "../view.js";

/** Which time counts to what. */
export const BUCKETS: Record<RunState, keyof RunView["time"]> = {
  created: "preparingMs",
  planned: "preparingMs",
  accepted: "preparingMs",
  preparing: "preparingMs",
  running: "workingMs",
  needs_approval: "waitingMs",
  applying: "workingMs",
  completed: "workingMs",
  failed: "workingMs",
  cancelled: "workingMs",
};

/** Where a run's time went up to now: since its last event it goes on as it was. */
export function timeUntil({ state, time, lastAt }: Pick<RunView, "state" | "time" | "lastAt">, nowMs: number): RunView["time"] {
  if (lastAt === null || state === "unknown" || TERMINAL_STATES.has(state)) return time;
  // The hub's clock may be ahead of this one.
  const since = Math.max(0, nowMs - Date.parse(lastAt));
  const bucket = BUCKETS[state];
  return { ...time, [bucket]: time[bucket] + since };
}
