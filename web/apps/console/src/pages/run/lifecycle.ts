// The lifecycle as it happened, the present state, and what may come next.
import type { RunState, RunView } from "@runyard/react";

/** A step of the rail. */
export type Step =
  | { when: "done" | "now"; state: RunState; sequence: number; at: string }
  | { when: "next"; state: RunState; why: "afterApproval" | "ifApplied" | "orElse" | "usual" }
  | { when: "folded"; count: number };

/** So many steps always have a place: fewer leave it empty, more are folded. What stands below them never moves. */
export const STEPS_SHOWN = 8;
const FIRST_STEPS = 2;

const ENDS: readonly string[] = ["completed", "failed", "cancelled"];
const BEFORE_RUNNING: readonly RunState[] = ["created", "planned", "accepted", "preparing", "running"];

/** Whether nothing leaves the state. */
export function isEnded(state: RunState | "unknown"): boolean {
  return ENDS.includes(state);
}

/** The steps to draw, folded in the middle unless all are wanted. */
export function stepsOf(view: Pick<RunView, "state" | "steps" | "open" | "executionPolicy">, all = false): Step[] {
  const last = view.steps.length - 1;
  const taken: Step[] = view.steps.map((step, index) => ({ when: index === last ? "now" : "done", ...step }));
  const next = nextOf(view);
  return [...(all ? taken : fold(taken, STEPS_SHOWN - next.length)), ...next];
}

function fold(steps: Step[], max: number): Step[] {
  if (steps.length <= max) return steps;
  const tail = max - FIRST_STEPS - 1;
  return [...steps.slice(0, FIRST_STEPS), { when: "folded", count: steps.length - FIRST_STEPS - tail }, ...steps.slice(-tail)];
}

function nextOf({ state, open, executionPolicy }: Pick<RunView, "state" | "open" | "executionPolicy">): Step[] {
  if (state === "unknown" || isEnded(state)) return [];
  const end: Step = { when: "next", state: "completed", why: "orElse" };
  const usual = (next: RunState): Step => ({ when: "next", state: next, why: "usual" });
  const apply: Step[] = executionPolicy?.changes === "keep" ? [] : [{ when: "next", state: "applying", why: "ifApplied" }];
  const place = BEFORE_RUNNING.indexOf(state);
  if (place !== -1) return [...BEFORE_RUNNING.slice(place + 1).map(usual), ...apply, end];
  if (state === "needs_approval") {
    const applies = open.some((approval) => approval.request.kind === "apply");
    return [{ when: "next", state: applies ? "applying" : "running", why: "afterApproval" }, end];
  }
  return [end];
}
