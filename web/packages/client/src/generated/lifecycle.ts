// Generated from the Rust types: do not edit. Made again by
// RUNYARD_WRITE_GENERATED=1 cargo test -p runyard-testkit -p runyard-cli --test typescript

import type { EventType } from "./events.js";

/** The states of a run, in the order of its life. */
export const RUN_STATES = [
  "created",
  "planned",
  "accepted",
  "preparing",
  "running",
  "needs_approval",
  "applying",
  "completed",
  "failed",
  "cancelled",
] as const;

/** Where a run stands. */
export type RunState = (typeof RUN_STATES)[number];

/** The states that nothing leaves. */
export const TERMINAL_STATES: ReadonlySet<RunState> = new Set<RunState>(["completed", "failed", "cancelled"]);

/** The event that a run begins with. */
export const FIRST_EVENT = "run.created" satisfies EventType;

/** The events that only tell: they are legal in every state that is not terminal, and move nothing. */
export const NOTES: ReadonlySet<EventType> = new Set<EventType>([
  "run.secrets.projected",
  "run.approval.used",
  "run.gate.judged",
  "run.degraded",
  "run.command.received",
  "run.command.heard",
  "run.cancel.requested",
  "run.turn.started",
  "run.turn.ended",
  "run.message.delta",
  "run.message.completed",
  "run.reasoning",
  "run.plan.updated",
  "run.thread.recorded",
  "run.tool.call",
  "run.tool.output",
  "run.tool.result",
  "run.file.read",
  "run.diff.ready",
  "run.patch.proposed",
  "run.artifact.ready",
  "run.preview.ready",
  "runtime.status",
  "runtime.died",
  "runtime.error",
  "runtime.unavailable",
  "runtime.timeout",
  "schema.validation_failed",
]);

/**
 * Where each further event leads to. What is missing is illegal there. A run that waits for people goes on running when the
 * last open approval is resolved, and waits until then.
 */
export const TRANSITIONS: Record<RunState, Partial<Record<EventType, RunState>>> = {
  created: {
    "run.planned": "planned",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  planned: {
    "run.accepted": "accepted",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  accepted: {
    "run.preparing": "preparing",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  preparing: {
    "run.started": "running",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  running: {
    "run.approval.requested": "needs_approval",
    "run.applying": "applying",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  needs_approval: {
    "run.approval.requested": "needs_approval",
    "run.approval.resolved": "running",
    "run.approval.snoozed": "needs_approval",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  applying: {
    "run.applied": "running",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
  },
  completed: {},
  failed: {},
  cancelled: {},
};

/** What an event does in a state: leads to one, only tells, or is illegal. */
export function outcome(state: RunState, type: EventType): RunState | "note" | "refused" {
  if (NOTES.has(type) && !TERMINAL_STATES.has(state)) return "note";
  return TRANSITIONS[state][type] ?? "refused";
}
