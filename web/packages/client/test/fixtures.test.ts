// Rust and TypeScript say the same about the same logs.
// clause: C03, C08

import { describe, expect, it } from "vitest";
import { foldRun, type RunEvent, type RunView } from "../src/index.js";
import { fixtures, rowsOf } from "./support/events.js";

/** Which of a backend's signals an event comes from: it is stored with the event, and no part of the fact. */
const UNTOLD = { backendEvent: undefined };

/** What Rust's fold says, made of what ours says: the same words, and what Rust leaves out left out. */
function asRust(view: RunView, events: readonly RunEvent[]): Record<string, unknown> {
  const { review, failure, cancelled, completed, usage } = view;
  const said = events.filter((event) => event.type === "run.message.completed").map((event) => event.payload as object);
  // What stands for an answer that broke off is nothing that the agent said.
  const last = said.findLast((message) => !("brokeOff" in message));
  const response = last !== undefined && "text" in last ? last.text : "";
  return {
    state: view.state,
    lastSequence: view.lastSequence,
    lastAt: view.lastAt,
    createdAt: view.createdAt,
    degraded: view.degraded.map(({ reason }) => reason),
    openApprovals: view.open.map((approval) => approval.approvalId).sort(),
    approvals: Object.fromEntries(
      view.approvals.map(({ approvalId, resolution }) => [
        approvalId,
        { resolution: resolution?.resolution, scope: resolution?.scope },
      ]),
    ),
    turns: view.turns,
    usage: usage && withoutNulls(usage),
    review: review && { status: review.status, digest: review.diff.digest, approvalId: review.approvalId },
    failure: failure && { ...failure, ...UNTOLD },
    cancelled: cancelled && { ...cancelled, ...UNTOLD },
    completed: completed === null ? null : { diff: completed.diff },
    response,
    time: { activeMs: activeMs(view), wallMs: Date.parse(view.lastAt ?? "") - Date.parse(view.createdAt ?? "") },
  };
}

function withoutNulls(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}

/** Time in which it neither waited for a place nor for people. */
function activeMs(view: RunView): number {
  const at = (state: string) => view.steps.find((step) => step.state === state)?.at;
  const end = view.steps.find((step) => ["running", "failed", "cancelled"].includes(step.state))?.at ?? view.lastAt ?? "";
  const accepted = at("accepted");
  return view.time.workingMs + (accepted === undefined ? 0 : Date.parse(end) - Date.parse(accepted));
}

describe("c08 a log that is whole", () => {
  for (const { name, events, view } of fixtures(".")) {
    it(`gives the view that Rust gives: ${name}`, () => {
      const found = foldRun(events);
      expect(asRust(found, events)).toEqual(view);
      expect(found.missing).toEqual([]);
      for (const event of events) expect(rowsOf(found)[found.rows.indexOf(event.sequence)]?.events).toContain(event);
    });
  }
});

describe("c03 a log with an illegal jump", () => {
  for (const { name, events, view } of fixtures("illegal")) {
    it(`is degraded there and stays where it was: ${name}`, () => {
      const at = Number(view["illegalAt"]);
      const before = foldRun(events.filter((event) => event.sequence < at));
      const after = foldRun(events.filter((event) => event.sequence <= at));
      const type = events.find((event) => event.sequence === at)?.type;
      expect(before.degraded).toEqual([]);
      expect(after.degraded).toEqual([{ reason: `illegal:${before.state}:${type}`, sequence: at }]);
      expect(after.state).toBe(before.state);
      expect(after.open).toEqual(before.open);
      expect(rowsOf(after).at(-1)).toMatchObject({ kind: "degraded", first: at, last: at });
      // What only tells is still read, unless the run was over.
      const all = foldRun(events);
      expect(all.lastSequence).toBe(events.length);
      const over = ["completed", "failed", "cancelled"].includes(all.state);
      expect(rowsOf(all).at(-1)?.kind === "degraded").toBe(over);
    });
  }
});
