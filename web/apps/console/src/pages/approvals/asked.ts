// An approval as this page shows it, whether it comes from a run's events or from the list over all runs.
import type { actions, ApprovalEntry } from "@runyard/react";
import { readAsk, type Ask } from "./request";

/** Where an approval stands. */
export type AskedState = "open" | "approved" | "rejected" | "expired" | "withdrawn";

/** How it was decided. */
export interface Decided {
  by: string;
  at: string | null;
  sequence: number | null;
  reason: string | null;
  scope: string | null;
  answer: unknown;
  revise: boolean;
  files: number | null;
  comments: number;
}

/** An approval, with everything that is needed to decide on it. */
export interface Asked {
  id: string;
  runId: string;
  ask: Ask;
  raw: unknown;
  redacted: boolean;
  digest: string;
  risk: string;
  reason: string;
  /** What else there is to know, as which part only the sandbox bounds. */
  notes: readonly string[];
  /** Why it can only be rejected by now. */
  denied: string | null;
  workspace: string;
  agentId: string;
  askedAt: string | null;
  sequence: number | null;
  expiresAt: string;
  snoozedUntil: string | null;
  state: AskedState;
  decided: Decided | null;
}

/** From a run's events. */
export function fromEvents(entry: ApprovalEntry, runId: string): Asked {
  const resolved = entry.resolution;
  return {
    id: entry.approvalId,
    runId,
    ask: readAsk(entry.request),
    raw: entry.request,
    redacted: entry.redacted,
    digest: entry.digest,
    risk: entry.risk,
    reason: entry.reason,
    notes: entry.notes ?? [],
    denied: null,
    workspace: entry.workspace.label,
    agentId: entry.actor.id,
    askedAt: entry.at,
    sequence: entry.sequence,
    expiresAt: entry.expiresAt,
    snoozedUntil: entry.snoozedUntil,
    state: resolved?.resolution ?? "open",
    decided: resolved && {
      by: resolved.decidedBy.id,
      at: resolved.at,
      sequence: resolved.sequence,
      reason: resolved.reason ?? null,
      scope: resolved.scope ?? null,
      answer: resolved.answer,
      revise: resolved.revise ?? false,
      files: resolved.selection?.length ?? null,
      comments: resolved.comments?.length ?? 0,
    },
  };
}

/** As lists and single answers give it. */
type Listed = Omit<actions.ApprovalView, "request"> & { request: unknown };

/** From the list over all runs. */
export function fromList(view: Listed): Asked {
  return {
    id: view.id,
    runId: view.runId,
    ask: readAsk(view.request),
    raw: view.request,
    redacted: view.redacted,
    digest: view.digest,
    risk: view.risk,
    reason: view.reason,
    notes: view.notes ?? [],
    denied: view.denied ?? null,
    workspace: view.workspace.label,
    agentId: view.agentId,
    askedAt: timeOf(view.id),
    sequence: null,
    expiresAt: view.expiresAt,
    snoozedUntil: view.snoozedUntil ?? null,
    state: view.state,
    decided:
      view.decidedBy === undefined
        ? null
        : {
            by: view.decidedBy.id,
            at: null,
            sequence: null,
            reason: view.decisionReason ?? null,
            scope: view.scope ?? null,
            answer: view.answer,
            revise: false,
            files: null,
            comments: 0,
          },
  };
}

/** What two sides say of one approval: what is decided never becomes open again, whichever of them is behind. */
export function later(streamed: Asked, told: Asked | undefined): Asked {
  if (told === undefined || told.state === "open" || streamed.state !== "open") return streamed;
  return { ...told, askedAt: streamed.askedAt, sequence: streamed.sequence };
}

/** When an id was made: its first 48 bits are the time. */
export function timeOf(id: string): string | null {
  const hex = /^[a-z]+_([0-9a-f]{12})/.exec(id.replaceAll("-", ""))?.[1];
  return hex === undefined ? null : new Date(Number.parseInt(hex, 16)).toISOString();
}

/** Whether nobody wants to be reminded of it yet. */
export function isSnoozed(asked: Asked, now: number): boolean {
  return asked.state === "open" && asked.snoozedUntil !== null && Date.parse(asked.snoozedUntil) > now;
}

/** Approvals of one risk. */
export interface Group {
  risk: string;
  asked: Asked[];
}

const RISKS = ["high", "medium", "low"];

/** By risk, the highest first; in each the oldest first. */
export function byRisk(all: readonly Asked[]): Group[] {
  const groups = new Map<string, Asked[]>();
  for (const risk of RISKS) groups.set(risk, []);
  for (const asked of [...all].sort((one, other) => (one.id < other.id ? -1 : 1))) {
    // A risk that is not known is taken for a high one.
    const risk = groups.has(asked.risk) ? asked.risk : "high";
    groups.get(risk)?.push(asked);
  }
  return [...groups].map(([risk, asked]) => ({ risk, asked })).filter((group) => group.asked.length > 0);
}

/** What a rejection leads to. */
export type Meaning = "end" | "tell" | "keep" | "applyEnd" | "fail" | "unknown";

/** What a rejection does to the run. */
export function meaningOf(ask: Ask, onReject: "cancel" | "continue" | null): Meaning {
  if (ask.kind === "repeat") return "fail";
  if (onReject === null) return "unknown";
  if (ask.kind === "apply") return onReject === "continue" ? "keep" : "applyEnd";
  return onReject === "continue" ? "tell" : "end";
}
