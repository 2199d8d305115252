// What a run looks like: folded from its events and from nothing else.

import type {
  ApplyStatus,
  ApprovalRequested,
  ApprovalResolved,
  ArtifactReady,
  CancelRequested,
  Cancelled,
  Carries,
  CommandReceived,
  Completed,
  DiffReady,
  EventOf,
  ExecutionPolicy,
  Failure,
  GateJudged,
  OnReject,
  PatchProposed,
  PlanStep,
  Planned,
  PreviewReady,
  RuntimeDied,
  RuntimeError,
  RuntimeStatus,
  SecretsProjected,
  SelectedFile,
  Started,
  Task,
  ToolCall,
  ToolResult,
  TurnOutcome,
  Who,
  WorkspaceRef,
} from "./generated/events.js";
import type { RunState } from "./generated/lifecycle.js";

/** An event of a run as the hub keeps it, of whatever type and version. */
export type RunEvent = EventOf<string, unknown>;

/** How the connection to a stream stands. */
export type Link =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "waiting"; since: string; retryAt: string; lastAt?: string }
  | { kind: "ended" }
  | { kind: "refused"; code: string; message: string };

/** An approval of a run, with what became of it. */
export interface ApprovalEntry extends ApprovalRequested {
  sequence: number;
  at: string;
  snoozedUntil: string | null;
  resolution: (ApprovalResolved & { sequence: number; at: string }) | null;
  /** Whether the decision was handed to the agent. */
  used: boolean;
}

/** What was found in the run's checkout, and what was decided about it. */
export interface ReviewEntry {
  diff: DiffReady;
  status: ApplyStatus;
  sequence: number;
  /** How many turns had begun: after a further one it is out of date. */
  turns: number;
  approvalId?: string;
  selection?: SelectedFile[];
  appliedDigest?: string;
  commit?: string;
}

/** A piece of what a tool wrote. */
export interface OutputPiece {
  stream: string;
  text: string;
  /** How many bytes were left out after it. */
  omitted: number;
  logPath?: string;
}

/** What every row of the timeline has. */
export interface RowFrame {
  key: string;
  /** The sequences of its first and last event. */
  first: number;
  last: number;
  at: string;
  endAt: string;
  /** The raw events, in order. */
  events: readonly RunEvent[];
}

/** What a row shows. */
export type RowContent =
  | { kind: "turn"; number: number; command?: CommandReceived; outcome?: TurnOutcome }
  /** One that broke off has what was heard of it, and the words that stand for the rest: the agent never said those. */
  | { kind: "message"; item: string; text: string; complete: boolean; brokeOff?: string }
  | { kind: "reasoning"; item: string; text: string }
  | { kind: "plan"; steps: readonly PlanStep[] }
  | { kind: "tool"; call: ToolCall; output: readonly OutputPiece[]; result: ToolResult | null; approval?: ApprovalEntry }
  | { kind: "read"; paths: readonly string[] }
  | { kind: "patch"; patch: PatchProposed }
  | { kind: "diff"; diff: DiffReady }
  /** `asked`: only the question; the decision came long after it and has a row of its own. */
  | { kind: "approval"; approval: ApprovalEntry; asked?: true }
  | { kind: "judged"; judged: GateJudged }
  /** `unheard`: it is on its way to the agent. */
  | { kind: "command"; command: CommandReceived; unheard?: true }
  /** The agent has a word whose command has no row. */
  | { kind: "heard" }
  | { kind: "cancelling"; requested: CancelRequested }
  | { kind: "artifact"; artifact: ArtifactReady }
  | { kind: "preview"; preview: PreviewReady }
  | { kind: "lifecycle"; state: RunState }
  | { kind: "runtime"; status?: RuntimeStatus; died?: RuntimeDied; error?: RuntimeError }
  | { kind: "secrets"; secrets: SecretsProjected }
  /** The conversation was recorded, after a while in which nothing else was. */
  | { kind: "thread" }
  | { kind: "degraded"; reason: string }
  | { kind: "gap"; ms: number; waiting: "person" | "agent" }
  | { kind: "missing"; from: number; to: number }
  | { kind: "unknown"; type: string };

/** A row of the timeline. It is replaced when it changes, so === says whether to render again. */
export type Row = RowFrame & RowContent;

/** The timeline: an immutable list that shares what did not change with the one before. */
export interface Rows {
  readonly length: number;
  /** The row at an index; throws a RangeError where there is none. */
  at(index: number): Row;
  /** The index of the row that holds the event of this sequence, or -1. */
  indexOf(sequence: number): number;
  /** Grows with every change. */
  readonly rev: number;
}

/** A run, folded from its events only. */
export interface RunView {
  /** "unknown" before the first event. */
  state: RunState | "unknown";
  lastSequence: number;
  lastAt: string | null;
  createdAt: string | null;
  task: Task | null;
  actor: Who | null;
  workspace: WorkspaceRef | null;
  agentId: string | null;
  backendProfile: string | null;
  sessionId: string | null;
  parentRunId: string | null;
  carries: Carries | null;
  edgeId: string | null;
  executionPolicy: ExecutionPolicy | null;
  onReject: OnReject | null;
  planned: Planned | null;
  started: Started | null;
  /** What cannot be relied on; what the reducer itself refuses is "illegal:<state>:<type>". */
  degraded: readonly { reason: string; sequence: number }[];
  /** The lifecycle as it happened: each entering of a state. */
  steps: readonly { state: RunState; sequence: number; at: string }[];
  rows: Rows;
  /** All approvals of the run, in order. */
  approvals: readonly ApprovalEntry[];
  open: readonly ApprovalEntry[];
  review: ReviewEntry | null;
  artifacts: readonly (ArtifactReady & { sequence: number; at: string })[];
  plan: readonly PlanStep[];
  turns: number;
  /** Whether a turn runs. */
  turnActive: boolean;
  usage: { inputTokens: number | null; outputTokens: number | null; costUsd: number | null } | null;
  /** How long it worked, waited for people, and prepared, up to lastAt. */
  time: { workingMs: number; waitingMs: number; preparingMs: number };
  failure: Failure | null;
  /** Somebody cancels while something is applied; the run ends soon. */
  cancelRequested: CancelRequested | null;
  cancelled: Cancelled | null;
  completed: Completed | null;
  /** Gaps that could not be fetched. */
  missing: readonly { from: number; to: number }[];
}

/** What a run's store gives. */
export interface RunSnapshot {
  id: string;
  link: Link;
  /** Grows with every change. */
  rev: number;
  view: RunView;
}
