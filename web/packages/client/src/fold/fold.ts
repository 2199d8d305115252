// Folds the events of a run into its view: the same for a run that is watched and for one that is read again.

import type { Usage } from "../generated/events.js";
import type { ApprovalEntry, RunEvent, RunView } from "../view.js";
import { isProven } from "./evidence.js";
import { Growing } from "./growing.js";
import { isKnown, type KnownEvent } from "./known.js";
import { review } from "./review.js";
import { Standing, isTerminal } from "./state.js";
import { BUCKETS } from "./time.js";
import { Timeline } from "./timeline.js";

/** After so long without an event the timeline shows the gap. */
export const GAP_MS_MIN = 60_000;

/** What the events say beside the state, each at its time. */
type Told = Omit<
  RunView,
  "state" | "lastSequence" | "lastAt" | "degraded" | "steps" | "rows" | "approvals" | "open" | "artifacts" | "time" | "missing"
>;

const NOTHING: Told = {
  createdAt: null,
  task: null,
  actor: null,
  workspace: null,
  agentId: null,
  backendProfile: null,
  sessionId: null,
  parentRunId: null,
  carries: null,
  edgeId: null,
  executionPolicy: null,
  onReject: null,
  planned: null,
  started: null,
  review: null,
  plan: [],
  turns: 0,
  turnActive: false,
  usage: null,
  failure: null,
  cancelRequested: null,
  cancelled: null,
  completed: null,
};

/** One run, event by event. */
export class RunFold {
  readonly #standing = new Standing();
  readonly #steps = new Growing<RunView["steps"][number]>();
  readonly #degraded = new Growing<RunView["degraded"][number]>();
  readonly #reasons = new Set<string>();
  readonly #artifacts = new Growing<RunView["artifacts"][number]>();
  readonly #missing = new Growing<RunView["missing"][number]>();
  readonly #approvals = new Growing<ApprovalEntry>();
  readonly #approvalById = new Map<string, { index: number; entry: ApprovalEntry }>();
  readonly #timeline = new Timeline((id) => this.#entry(id));
  #told: Told = NOTHING;
  #time = { workingMs: 0, waitingMs: 0, preparingMs: 0 };
  /** How long it has been in its state, without what was taken back. */
  #spanMs = 0;
  #lastSequence = 0;
  #lastAt: string | null = null;
  #lastMs = 0;
  #open: readonly ApprovalEntry[] = [];
  #openOf: readonly ApprovalEntry[] | null = null;
  #view: RunView | null = null;

  /** The place of the last event, also of one that is missing. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Whether nothing can follow. */
  get isOver(): boolean {
    return isTerminal(this.#standing.state);
  }

  /** Takes the next event. Events come in order; what has no place after the last one is not taken. */
  apply(event: RunEvent): void {
    if (event.sequence <= this.#lastSequence) return;
    this.#view = null;
    const known = isKnown(event) ? event : null;
    this.#pass(event, known?.type === "runtime.status" ? (known.payload.awayMs ?? 0) : 0);
    if (known === null) this.#timeline.note(event, { kind: "unknown", type: event.type });
    else if (isProven(known) && this.#take(known)) this.#timeline.show(known, this.#standing.state);
    else this.#refuse(known);
    this.#lastSequence = event.sequence;
    this.#lastAt = event.timestamp;
  }

  /** Goes on without events that nobody can give. */
  skip(to: number): void {
    const from = this.#lastSequence + 1;
    if (to < from) return;
    this.#view = null;
    this.#missing.push({ from, to });
    this.#timeline.missing(from, to, this.#lastAt ?? new Date(0).toISOString());
    this.#standing.lose();
    this.#lastSequence = to;
  }

  /** What all events so far say. It does not change any more. */
  view(): RunView {
    this.#view ??= {
      ...this.#told,
      state: this.#standing.state,
      lastSequence: this.#lastSequence,
      lastAt: this.#lastAt,
      degraded: this.#degraded.take(),
      steps: this.#steps.take(),
      rows: this.#timeline.rows(),
      approvals: this.#approvals.take(),
      open: this.#openNow(),
      artifacts: this.#artifacts.take(),
      time: { ...this.#time },
      missing: this.#missing.take(),
    };
    return this.#view;
  }

  /** Counts the time up to an event, without what no hub looked after, and shows where it is long. */
  #pass(event: RunEvent, awayMs: number): void {
    const ms = Date.parse(event.timestamp);
    if (this.#lastAt !== null && !this.isOver) {
      const passed = Math.max(0, ms - this.#lastMs);
      this.#count(passed, awayMs);
      if (passed > GAP_MS_MIN) {
        const since = { sequence: this.#lastSequence, at: this.#lastAt };
        this.#timeline.gap(since, event, passed, this.#standing.open.size > 0 ? "person" : "agent");
      }
    }
    this.#lastMs = Math.max(this.#lastMs, ms);
  }

  #count(passedMs: number, awayMs: number): void {
    const { state } = this.#standing;
    if (state === "unknown") return;
    const bucket = BUCKETS[state];
    this.#spanMs += passedMs;
    // Nobody is waited for less because no hub was there; for work it does not count.
    const lost = bucket === "waitingMs" ? 0 : Math.min(awayMs, this.#spanMs);
    this.#time[bucket] += passedMs - lost;
    if (awayMs > 0) this.#spanMs = 0;
  }

  #refuse(event: KnownEvent): void {
    const reason = `illegal:${this.#standing.state}:${event.type}`;
    this.#degraded.push({ reason, sequence: event.sequence });
    this.#timeline.note(event, { kind: "degraded", reason });
  }

  #take(event: KnownEvent): boolean {
    const before = this.#standing.state;
    const { review: reviewed } = this.#told;
    if (!this.#standing.take(event, (id) => reviewed?.approvalId === id)) return false;
    const { state } = this.#standing;
    if (state !== before) this.#spanMs = 0;
    if (state !== before && state !== "unknown") this.#steps.push({ state, sequence: event.sequence, at: event.timestamp });
    this.#tell(event);
    return true;
  }

  /** Takes in what an event says beside the state. */
  #tell(event: KnownEvent): void {
    const { sequence, timestamp: at } = event;
    const told = this.#told;
    const reviewed = review(told.review, event, told.turns, told.carries?.undo ?? false);
    this.#told = reviewed === told.review ? told : { ...told, review: reviewed };
    switch (event.type) {
      case "run.created": {
        const { task, actor, workspace, agentId, backendProfile, sessionId, executionPolicy, onReject } = event.payload;
        const { parentRunId = null, carries = null } = event.payload;
        const whence = { createdAt: at, task, actor, workspace, agentId, backendProfile, sessionId };
        return this.#set({ ...whence, executionPolicy, onReject, parentRunId, carries });
      }
      case "run.planned":
        return this.#set({ planned: event.payload, edgeId: event.payload.edgeId });
      case "run.accepted":
        return this.#set({ edgeId: event.payload.edgeId });
      case "run.started":
        return this.#set({ started: event.payload });
      case "run.degraded":
        if (this.#reasons.has(event.payload.reason)) return;
        this.#reasons.add(event.payload.reason);
        return this.#degraded.push({ reason: event.payload.reason, sequence });
      case "run.turn.started":
        return this.#set({ turns: told.turns + 1, turnActive: true });
      case "run.turn.ended":
        return this.#set({ turnActive: false });
      case "run.plan.updated":
        return this.#set({ plan: event.payload.steps });
      case "run.artifact.ready":
        return this.#artifacts.push({ ...event.payload, sequence, at });
      case "runtime.status":
        return event.payload.usage === undefined ? undefined : this.#set({ usage: later(told.usage, event.payload.usage) });
      case "run.completed":
        return this.#set({ completed: event.payload, turnActive: false });
      case "run.failed": {
        const { terminalStatus: _, step: __, metrics: ___, ...failure } = event.payload;
        return this.#set({ failure, turnActive: false });
      }
      case "run.cancel.requested":
        return this.#set({ cancelRequested: event.payload });
      case "run.cancelled":
        return this.#set({ cancelled: event.payload, turnActive: false });
      default:
        return this.#tellApproval(event);
    }
  }

  #tellApproval(event: KnownEvent): void {
    const { sequence, timestamp: at } = event;
    switch (event.type) {
      case "run.approval.requested": {
        const entry = { ...event.payload, sequence, at, snoozedUntil: null, resolution: null, used: false };
        this.#approvalById.set(entry.approvalId, { index: this.#approvals.length, entry });
        return this.#approvals.push(entry);
      }
      case "run.approval.resolved":
        return this.#change(event.payload.approvalId, { resolution: { ...event.payload, sequence, at } });
      case "run.approval.snoozed":
        return this.#change(event.payload.approvalId, { snoozedUntil: event.payload.until, expiresAt: event.payload.expiresAt });
      case "run.approval.used":
        return this.#change(event.payload.approvalId, { used: true });
      default:
        return;
    }
  }

  #set(told: Partial<Told>): void {
    this.#told = { ...this.#told, ...told };
  }

  #change(approvalId: string, changed: Partial<ApprovalEntry>): void {
    const held = this.#approvalById.get(approvalId);
    if (held === undefined) return;
    held.entry = { ...held.entry, ...changed };
    this.#approvals.replace(held.index, held.entry);
  }

  #entry(approvalId: string): ApprovalEntry {
    const held = this.#approvalById.get(approvalId);
    if (held === undefined) throw new Error(`There is no approval ${approvalId}.`);
    return held.entry;
  }

  #openNow(): readonly ApprovalEntry[] {
    const all = this.#approvals.take();
    const { open } = this.#standing;
    if (this.#openOf !== all || this.#open.length !== open.size) this.#open = all.filter((entry) => open.has(entry.approvalId));
    this.#openOf = all;
    return this.#open;
  }
}

/** What was used by the later of two reports: never less than by the earlier one, and what only that one said still holds. */
function later(before: RunView["usage"], usage: Usage): RunView["usage"] {
  const most = (one: number | null | undefined, other: number | undefined) => {
    const known = [one, other].filter((number) => typeof number === "number");
    return known.length === 0 ? null : Math.max(...known);
  };
  return {
    inputTokens: most(before?.inputTokens, usage.inputTokens),
    outputTokens: most(before?.outputTokens, usage.outputTokens),
    costUsd: most(before?.costUsd, usage.costUsd),
  };
}

/** The view of a run whose events are all there, in order. */
export function foldRun(events: Iterable<RunEvent>): RunView {
  const fold = new RunFold();
  for (const event of events) fold.apply(event);
  return fold.view();
}
