// Where a run stands, by the table that the hub itself goes by.

import type { EventType } from "../generated/events.js";
import { FIRST_EVENT, NOTES, TERMINAL_STATES, TRANSITIONS, type RunState } from "../generated/lifecycle.js";
import type { KnownEvent } from "./known.js";

/** Where a run stands, and what it holds for that. */
export class Standing {
  state: RunState | "unknown" = "unknown";
  readonly open = new Set<string>();
  /** Decisions that the agent has not asked for yet, with whether they reach to the whole run. */
  readonly #grants = new Map<string, boolean>();
  /** Whether events are missing, so that the next move counts whatever it comes from. */
  #lost = false;
  /** Whether an event came, legal or not. */
  #begun = false;

  /** Says that events are missing. */
  lose(): void {
    this.#lost = true;
  }

  /** Takes an event; says whether it was legal. One that is not changes nothing. */
  take(event: KnownEvent, isReview: (approvalId: string) => boolean): boolean {
    const next = this.#next(event);
    this.#begun = true;
    if (next === null || (event.type === "run.approval.used" && !this.#use(event.payload.approvalId))) return false;
    if (event.type === "run.approval.requested") this.open.add(event.payload.approvalId);
    if (event.type === "run.approval.resolved") {
      const { approvalId, resolution, scope } = event.payload;
      const held = this.open.delete(approvalId) && resolution !== "withdrawn" && !isReview(approvalId);
      if (held) this.#grants.set(approvalId, resolution === "approved" && (scope ?? "once") !== "once");
    }
    if (next !== this.state && !NOTES.has(event.type)) this.#lost = false;
    this.state = next;
    if (isTerminal(next)) {
      this.open.clear();
      this.#grants.clear();
    }
    return true;
  }

  #next(event: KnownEvent): RunState | "unknown" | null {
    const { state } = this;
    if (state === "unknown") return this.#first(event.type);
    if (isTerminal(state)) return null;
    if (NOTES.has(event.type)) return state;
    const next = TRANSITIONS[state][event.type];
    if (next === undefined) return this.#landing(event.type);
    switch (event.type) {
      case "run.approval.requested":
        return this.open.has(event.payload.approvalId) ? null : next;
      case "run.approval.resolved":
        if (!this.open.has(event.payload.approvalId)) return this.#landing(event.type);
        return this.open.size > 1 ? state : next;
      case "run.approval.snoozed":
        return this.open.has(event.payload.approvalId) ? next : this.#landing(event.type);
      default:
        return next;
    }
  }

  #first(type: EventType): RunState | "unknown" | null {
    if (type === FIRST_EVENT) return "created";
    // The log began in the middle, which was told; what it says is shown all the same.
    return this.#begun && NOTES.has(type) ? "unknown" : this.#landing(type);
  }

  #use(approvalId: string): boolean {
    const forTheRun = this.#grants.get(approvalId);
    if (forTheRun === false) this.#grants.delete(approvalId);
    return forTheRun !== undefined || this.#lost;
  }

  /** Where an event leads to from wherever it is legal, while it is not known where the run stood. */
  #landing(type: EventType): RunState | "unknown" | null {
    if (!this.#lost) return null;
    if (NOTES.has(type)) return this.state;
    const targets = Object.values(TRANSITIONS).map((moves) => moves[type]);
    return targets.find((target) => target !== undefined) ?? null;
  }
}

/** Whether nothing leaves a state. */
export function isTerminal(state: RunState | "unknown"): boolean {
  return state !== "unknown" && TERMINAL_STATES.has(state);
}
