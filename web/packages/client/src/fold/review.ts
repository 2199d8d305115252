// What became of a run's changes: looked at, approved or not, applied.

import type { ApplyStatus, ApprovalResolved } from "../generated/events.js";
import type { ReviewEntry } from "../view.js";
import type { KnownEvent } from "./known.js";

const DECIDED: Record<ApprovalResolved["resolution"], ApplyStatus> = {
  approved: "approved",
  rejected: "rejected",
  expired: "rejected",
  withdrawn: "proposed",
};

/** The review after one more event. `undoes` says whether the run takes changes back. */
export function review(last: ReviewEntry | null, event: KnownEvent, turns: number, undoes: boolean): ReviewEntry | null {
  if (event.type === "run.diff.ready") return { diff: event.payload, status: "proposed", sequence: event.sequence, turns };
  if (last === null) return null;
  switch (event.type) {
    case "run.approval.requested":
      return event.payload.request.kind === "apply" ? { ...last, approvalId: event.payload.approvalId } : last;
    case "run.approval.resolved":
      return event.payload.approvalId === last.approvalId ? decided(last, event.payload) : last;
    case "run.applying":
      return { ...last, status: "applying", appliedDigest: event.payload.digest };
    case "run.applied":
      return committed({ ...last, status: undoes ? "undone" : "applied" }, event.payload.commit);
    case "run.failed":
      return last.status === "applying" || last.status === "approved" ? { ...last, status: "failed" } : last;
    case "run.cancelled":
      return last.status === "applying" ? { ...last, status: "failed" } : last;
    default:
      return last;
  }
}

function decided({ selection: _, ...last }: ReviewEntry, resolved: ApprovalResolved): ReviewEntry {
  const chosen = resolved.selection === undefined ? {} : { selection: resolved.selection };
  return { ...last, ...chosen, status: DECIDED[resolved.resolution] };
}

function committed({ commit: _, ...last }: ReviewEntry, commit: string | undefined): ReviewEntry {
  return commit === undefined ? last : { ...last, commit };
}
