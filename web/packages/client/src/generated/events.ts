// Generated from the Rust types: do not edit. Made again by
// RUNYARD_WRITE_GENERATED=1 cargo test -p runyard-testkit -p runyard-cli --test typescript

import type { Code } from "./errors.js";

/** `run.created`. */
export interface Created {
  /** What is to be done. */
  task: Task;
  /** Who wants it. */
  actor: Who;
  /** Where. */
  workspace: WorkspaceRef;
  /** The agent profile. */
  agentId: string;
  /** The backend profile: the caller's, else the agent profile's. */
  backendProfile: string;
  /** The conversation. */
  sessionId: SessionId;
  /** What the run may do. */
  executionPolicy: ExecutionPolicy;
  /** What a rejected approval means. */
  onReject: OnReject;
  /** The run that this one continues, applies or undoes. */
  parentRunId?: RunId;
  /** The backend's thread that it goes on with. */
  thread?: string;
  /** The changes of another run that it applies or takes back; then it has no agent. */
  carries?: Carries;
}

/** What is to be done. */
export type Task =
  /** A text for an agent. */
  | {
      kind: "text";
      /** The text, as it is stored and as the agent gets it. */
      text: string;
      /** Whether redaction changed what the person wrote. */
      redacted: boolean;
    }
  /** One action with its input. */
  | {
      kind: "action";
      /** The action's name. */
      action: string;
      /** Its input. */
      input: unknown;
    };

/** Who did something, as a record names them. */
export type Who = {
  /** The actor's name. */
  id: string;
} & (
  /** A human being. */
  | {
      kind: "person";
    }
  /** A program that acts for itself. */
  | {
      kind: "service";
    }
  /** An AI agent, inside the run that it drives. */
  | {
      kind: "agent";
      /** The run that the agent drives. */
      runId: RunId;
    });

/** One attempt at a task. */
export type RunId = string;

/** A directory that a person named, as everybody but its edge knows it. */
export interface WorkspaceRef {
  /** Its id. */
  id: WorkspaceId;
  /** Its name for people. */
  label: string;
}

/** A directory that a person named, on one edge. */
export type WorkspaceId = string;

/** A conversation that runs share. */
export type SessionId = string;

/** What a run may do. It can only narrow what the policy allows. */
export interface ExecutionPolicy {
  /** How its processes are confined. */
  sandbox: Sandbox;
  /** Whether it may use the network. */
  network: Network;
  /** Whether people may be asked. */
  approval: Approval;
  /** How long the whole run may take, not counting the time in which it waits for people. */
  timeoutMs: number;
  /** How long it may be silent. */
  idleMs: number;
  /**
   * How long it stays open for a further turn after one has ended; without it the run ends with its last turn. It keeps
   * its place among the active runs meanwhile, and the time counts toward `timeout_ms`.
   */
  keepOpenMs?: number;
  /** What it may use at most. */
  budget?: Budget;
  /** What becomes of what it changed. */
  changes?: Changes;
  /** The secrets that it may be given; those of its backend profile where it does not say. */
  secretScope?: SecretScope;
}

/** How processes are confined. */
export type Sandbox =
  /** They may read. */
  | "read-only"
  /** They may write in the run's checkout. */
  | "workspace-write"
  /** They are not confined. */
  | "none";

/** Whether the network may be used. */
export type Network =
  /** No. */
  | "deny"
  /** As the gate says. */
  | "ask"
  /** Yes, where no rule of the gate asks or denies. */
  | "allow";

/** Whether people may be asked. */
export type Approval =
  /** Yes. */
  | "ask"
  /** No: what would be asked is denied. */
  | "never";

/** What a run may use at most. Exactly so much is fine. */
export interface Budget {
  /** What it may cost. */
  costUsd?: Dollars;
  /** How many tokens, in and out together. */
  tokens?: number;
}

/** An amount of US dollars, exact to a millionth. It is written as a text, never as a number. */
export type Dollars = string;

/** What becomes of what a run changed in its checkout. */
export type Changes =
  /** A person is asked to apply it before the run ends. */
  | "ask"
  /** It stays in the checkout, to be looked at and applied later. */
  | "keep";

/** The secrets that a run may be given. */
export interface SecretScope {
  /** Of which backend profile, and where they are. */
  providerCredentials: ProviderCredential[];
}

/** One profile's secrets. */
export interface ProviderCredential {
  /** The backend profile. */
  profile: string;
  /** Where they are. */
  secretRef: SecretRef;
}

/** A name for secrets, never their value. */
export interface SecretRef {
  /** The name. */
  name: string;
  /** Which of its keys. */
  keys: string[];
}

/** What happens to a run when an approval is rejected. */
export type OnReject =
  /** The run ends as cancelled. */
  | "cancel"
  /** The agent is told and goes on. */
  | "continue";

/** The changes of a run that has ended, to be applied or taken back by another. */
export interface Carries {
  /** The run that made them, or that applied them. */
  of: RunId;
  /** Whether they are taken back. */
  undo?: boolean;
  /** Which part of them; without it all of them. */
  selection?: SelectedFile[];
  /** Where to. */
  to?: ApplyTo;
  /** Stands for what was looked at. */
  digest?: string;
}

/** A file that a person chose, whole or by hunk. */
export interface SelectedFile {
  /** The file's id in the diff. */
  file: string;
  /** The hunks: 1, 2, 3, …; without them the whole file. */
  hunks?: number[];
}

/** Where changes are brought to. */
export type ApplyTo =
  /** The person's files. */
  | "files"
  /** The person's files, and a commit of them on the branch that is checked out. */
  | "commit"
  /** A commit on a new branch of that name. The person's files stay as they are. */
  | {
      branch: string;
    };

/** `run.planned`. */
export interface Planned {
  /** The edge that is to execute it. */
  edgeId: string;
  /** How the workspace is checked. */
  workspacePolicy: string;
  /** The backend profile that is to drive it. */
  runtimeProfile: string;
  /** The preset of the gate, and the version of the policy. */
  approvalPolicy: ApprovalPolicyRef;
  /** What brings its checkout to where the agent can begin. */
  preparation?: Preparation;
  /** The backend as it was configured then. */
  backend?: PlannedBackend;
}

/** Which policy a run was planned under. A later version reaches the run too. */
export interface ApprovalPolicyRef {
  /** The preset. */
  preset: string;
  /** The version of the policy. */
  version: number;
}

/**
 * What brings a checkout to where an agent can begin. It comes from configuration that counts: that trust is the
 * approval, and nothing asks.
 */
export interface Preparation {
  /** Which ignored files are brought: patterns as in a `.gitignore`. */
  copy?: string[];
  /** What is run there, one after the other: each a program and its arguments. */
  setup?: string[][];
}

/**
 * The backend that a run was planned on, as it was configured then. It is told, and never executed: what is started
 * comes from the configuration.
 */
export interface PlannedBackend {
  /** Its kind. */
  backendKind: string;
  /** What is started, with its arguments. */
  command: string[];
  /** Stands for the whole profile. */
  digest: string;
}

/** `run.accepted`. */
export interface Accepted {
  /** The edge that confirmed. It never changes from here on. */
  edgeId: string;
}

/** `run.preparing`. */
export interface Preparing {
  /** What is being checked, in order. */
  checks: string[];
}

/** `run.started`. */
export interface Started {
  /** The kind of backend that drives it. */
  backendKind: string;
  /** The protocol that it speaks. */
  protocol: string;
  /** What was checked in Preparing, with what was found. */
  checks: Record<string, string>;
}

/** `run.secrets.projected`: a profile's secrets were made available to this run, for one session. Names only. */
export interface SecretsProjected {
  /** The backend profile that they are for. */
  profile: string;
  /** Which of its secrets. */
  keys: string[];
  /** How. */
  how: ProjectedHow;
}

/** How secrets are made available to a run. */
export type ProjectedHow =
  /** The edge's gateway holds them, and the agent's processes never do. */
  | "gateway"
  /** As files in the session's private home. */
  | "home";

/** `run.approval.requested`. */
export interface ApprovalRequested {
  /** Its id. */
  approvalId: ApprovalId;
  /** The backend's own name for the request, within its session. */
  key: string;
  /** What is asked, exactly. What was redacted is a placeholder. */
  request: Request;
  /** Whether something in it was redacted. */
  redacted: boolean;
  /** Stands for the raw content, made by the edge. */
  digest: string;
  /** How much is at stake. */
  risk: Risk;
  /** Why it is asked and not simply done. */
  reason: string;
  /** What else there is to know, as which part only the sandbox bounds. */
  notes?: string[];
  /** Where. */
  workspace: WorkspaceRef;
  /** The agent that asks. */
  actor: Who;
  /** When no answer counts as a rejection. */
  expiresAt: Timestamp;
}

/** A person's decision on one named risk, asked for or given. */
export type ApprovalId = string;

/**
 * One thing that an agent wants to do. Paths inside the workspace are relative to it, with `/` between parts and no
 * `..`; every other path is absolute.
 */
export type Request =
  /** Read a file or list a directory. */
  | {
      kind: "read";
      /** Which. */
      path: string;
    }
  /** Write or remove a file. */
  | {
      kind: "write";
      /** Which. */
      path: string;
      /** What the file will hold, as far as it is text and known. */
      content?: string;
    }
  /** Change files by a patch. */
  | {
      kind: "patch";
      /** The files it changes. */
      files: string[];
      /** The patch. */
      patch: string;
    }
  /** Run a command. */
  | {
      kind: "shell";
      /** The command line as a shell reads it. */
      command: string;
      /** The directory it runs in; the workspace itself is `.`. */
      cwd: string;
    }
  /** Open a connection. */
  | {
      kind: "network";
      /** The host's name or address. */
      host: string;
      /** The port, where known. */
      port?: number;
    }
  /** Make a commit. */
  | {
      kind: "git_commit";
      /** Its message. */
      message: string;
    }
  /** Push commits. */
  | {
      kind: "git_push";
      /** Where to. */
      remote: string;
      /** Which branch or ref. */
      branch: string;
    }
  /** Publish something: a package, a page, a message to others. */
  | {
      kind: "publish";
      /** What, and where to. */
      target: string;
    }
  /** Deploy something. */
  | {
      kind: "deploy";
      /** What, and where to. */
      target: string;
    }
  /** Read a secret. */
  | {
      kind: "secret";
      /** Its name. */
      name: string;
    }
  /** Call an action. */
  | {
      kind: "action";
      /** Its name. */
      action: string;
      /** What it does to the world. */
      sideEffects: SideEffects;
      /** Its input. */
      input: unknown;
    }
  /** Ask a person something. Nothing is done by it, so no rule decides it: it is always asked. */
  | Question & {
      kind: "question";
    }
  /** Bring what changed in the run's checkout to a person's files. No rule decides it: it is always asked. */
  | {
      kind: "apply";
      /** What it starts from. */
      base: string;
      /** What it leads to. */
      target: string;
      /** How much changed. */
      stats: DiffStats;
      /** The first of the files. */
      files: string[];
      /** Where to. */
      to: ApplyTo;
      /** Whether what was applied is taken back. */
      undo?: boolean;
    }
  /** Repeat a step that a dead process had begun: nobody knows whether it took effect. */
  | {
      kind: "repeat";
      /** The step, as the log names it. */
      step: string;
    };

/** What an action does to the world. */
export type SideEffects =
  /** Nothing. */
  | "read"
  /** It changes something. */
  | "write"
  /** It destroys something. */
  | "destructive";

/** A question to a person. */
export interface Question {
  /** What is asked. */
  prompt: string;
  /** The JSON Schema of the answer. */
  answerSchema: unknown;
}

/** How much changed. */
export interface DiffStats {
  /** Files that changed. */
  files: number;
  /** Lines that are new. */
  insertions: number;
  /** Lines that are gone. */
  deletions: number;
  /** Files that count only where they are chosen by themselves. */
  protected?: number;
  /** Things in the checkout that can be no change, such as hard links and sockets. */
  problems?: number;
}

/** How much can go wrong. */
export type Risk =
  /** Little. */
  | "low"
  /** Something changes, or something unknown runs. */
  | "medium"
  /** It reaches beyond the run, destroys, or touches keys. */
  | "high";

/**
 * A point in time, in milliseconds since 1970, written as RFC 3339 in UTC with milliseconds.
 *
 * It is only a value: this crate has no clock.
 */
export type Timestamp = string;

/** `run.approval.resolved`. */
export interface ApprovalResolved {
  /** Which one. */
  approvalId: ApprovalId;
  /** How. */
  resolution: Resolution;
  /** Who decided. */
  decidedBy: Who;
  /** What they said about it. */
  reason?: string;
  /** How far the decision reaches. */
  scope?: DecisionScope;
  /** The answer to a question. */
  answer?: unknown;
  /** Which part of a diff was approved; without it all of it. */
  selection?: SelectedFile[];
  /** What was said on lines of a diff. */
  comments?: Comment[];
  /** Whether the agent is to try again, with what was said. */
  revise?: boolean;
}

/** How an approval ended. */
export type Resolution =
  /** Yes. */
  | "approved"
  /** No. */
  | "rejected"
  /** Nobody answered in time, which is a no. */
  | "expired"
  /** The agent no longer asks, or the run ended. */
  | "withdrawn";

/** How far a decision reaches. */
export type DecisionScope =
  /** To the one request. */
  | "once"
  /** To the same request, as often as it comes in the run. */
  | "run"
  /** As for the run; and a rule allows it in the runs of its session. */
  | "session"
  /** As for the run; and a rule allows it in the workspace. */
  | "project";

/** A person's word on a line of a diff. */
export interface Comment {
  /** The file's id in the diff. */
  file: string;
  /** The line in the new text, or in the old one where the file is gone. */
  line?: number;
  /** What is said. */
  text: string;
}

/** `run.approval.snoozed`: somebody wants to decide later. It is no answer, and it expires later by as much. */
export interface ApprovalSnoozed {
  /** Which one. */
  approvalId: ApprovalId;
  /** Until when. */
  until: Timestamp;
  /** When no answer counts as a rejection, from now on. */
  expiresAt: Timestamp;
  /** Who. */
  by: Who;
  /** Why. */
  reason?: string;
}

/** `run.approval.used`: the decision was handed to the agent, which can happen once. */
export interface ApprovalUsed {
  /** Which one. */
  approvalId: ApprovalId;
}

/** `run.gate.judged`: a request that needed nobody's decision. */
export interface GateJudged {
  /** The backend's own name for the request, within its session. */
  key: string;
  /** What was asked for. */
  request: Request;
  /** Allowed or denied. */
  effect: Effect;
  /** Why. */
  reason: string;
  /** The mark of the rule for one time that is used up by it. */
  ruleUsed?: string;
}

/** What becomes of a request, from the mildest to the most severe. */
export type Effect =
  /** It is done. */
  | "allow"
  /** A person decides. */
  | "ask"
  /** It is not done. */
  | "deny";

/** `run.applying`. */
export interface Applying {
  /** What allowed it. */
  approvalId: ApprovalId;
  /** Stands for what is applied: the chosen part, as the edge found it. */
  digest: string;
  /** Where to. */
  to?: ApplyTo;
  /** How much. */
  stats?: DiffStats;
}

/** `run.applied`. */
export interface Applied {
  /** What allowed it. */
  approvalId: ApprovalId;
  /** What was applied. */
  digest: string;
  /** The commit that holds it, where one was asked for. */
  commit?: string;
}

/** `run.completed`. */
export interface Completed {
  /** What the agent said last. */
  response: string;
  /** The ids of what was produced. */
  artifacts: string[];
  /** What changed. */
  diff: DiffState;
  /** Time, tokens and cost, where known. */
  metrics: Metrics;
  /** Approvals that were given and never asked for again. */
  unusedApprovals?: ApprovalId[];
}

/** What changed in the run's checkout, as far as it is known at the end. */
export type DiffState =
  /** Nothing changed. */
  | "unchanged"
  /** Something changed and is kept in the checkout. */
  | "kept"
  /** It was brought to the person's files, or to a branch. */
  | "applied"
  /** Nobody looked: the run had no checkout. */
  | "none";

/** Time, tokens and cost, where known. */
export interface Metrics {
  /** From creation to end. */
  wallMs: number;
  /** The same without the time in which it waited for people. */
  activeMs: number;
  /** Tokens and cost. */
  usage?: Usage;
}

/** What a backend used so far. */
export interface Usage {
  /** Tokens in. */
  inputTokens?: number;
  /** Tokens out. */
  outputTokens?: number;
  /** What it cost, in US dollars. */
  costUsd?: number;
}

/** `run.failed`. */
export interface Failed {
  /** The run's code. */
  code: Code;
  /** The backend's failure kind, where a backend failed. */
  failureKind?: FailureKind;
  /** What happened, safe to show. */
  message: string;
  /** What to do first: the failure kind's, where there is one. */
  recovery: string;
  /** The code of what our own agent loop failed with, where it did. */
  cause?: Code;
  /** The limit of its budget that the run went beyond. */
  exceeded?: Exceeded;
  /** The backend's last word: `failed` or `blocked`. */
  terminalStatus: string;
  /** The step whose outcome nobody knows. */
  step?: string;
  /** Time, tokens and cost, where known. */
  metrics: Metrics;
}

/** What went wrong in a backend. */
export type FailureKind =
  /** A secret that the profile needs is missing or unreadable. */
  | "secret-unavailable"
  /** The provider refused the credential. */
  | "provider-auth-failed"
  /** The provider's limit or quota is reached. */
  | "provider-rate-limited"
  /** The provider does not answer, or answers with a 5xx. */
  | "provider-unavailable"
  /** The backend broke its protocol. */
  | "backend-protocol-error"
  /** The backend wrote something that is no JSON. */
  | "backend-json-parse-error"
  /** An answer of the backend lacks a field. */
  | "backend-response-invalid"
  /** The backend's process cannot start. */
  | "backend-spawn-failed"
  /** The backend ended with an error. */
  | "backend-failed"
  /** The backend took longer than the policy allows. */
  | "backend-timeout"
  /** An interrupt or cancel took effect. */
  | "cancelled";

/** A limit that a run went beyond. */
export type Exceeded =
  /** It cost more. */
  | {
      limit: "costUsd";
      /** What it could. */
      allowed: Dollars;
      /** What it did. */
      used: Dollars;
    }
  /** It used more tokens. */
  | {
      limit: "tokens";
      /** How many it could. */
      allowed: number;
      /** How many it did. */
      used: number;
    };

/** `run.cancelled`. */
export interface Cancelled {
  /** Who. */
  by: Who;
  /** Why. */
  reason: string;
  /** `approval_rejected` where that was the cause. */
  code?: Code;
  /** Time, tokens and cost, where known. */
  metrics: Metrics;
}

/** `run.degraded`. */
export interface Degraded {
  /** What cannot be relied on. */
  reason: string;
}

/** `run.command.received`. */
export interface CommandReceived {
  /** Its id. */
  commandId: CommandId;
  /** What. */
  command: CommandKind;
  /** The text of a turn or a steer, as it is stored and as the agent gets it. */
  text?: string;
  /**
   * Whether it is said to the agent again, until `run.command.heard` or the end of the turn. In logs of before that it
   * never was.
   */
  untilHeard?: boolean;
  /** Who. */
  actor: Who;
}

/** An instruction to a live run. */
export type CommandId = string;

/** The instructions to a live run. */
export type CommandKind =
  /** A further turn, after the one that runs. */
  | "turn"
  /** A word into the turn that runs. */
  | "steer"
  /** The end of the turn that runs. */
  | "interrupt"
  /** The end of a run that is kept open, as soon as no turn runs or waits. */
  | "finish";

/** `run.command.heard`: the agent has the word that was said to it, or it was told why not. It is not said again. */
export interface CommandHeard {
  /** The command. */
  commandId: CommandId;
}

/**
 * `run.cancel.requested`: somebody ends the run while something is applied. What is not all in place is taken back
 * first.
 */
export interface CancelRequested {
  /** Who. */
  by: Who;
  /** Why. */
  reason: string;
}

/** `run.turn.started`. */
export interface TurnStarted {
  /** The command that asked for it; the first turn is the task itself. */
  commandId?: CommandId;
}

/** `run.turn.ended`. */
export interface TurnEnded {
  /** How. */
  outcome: TurnOutcome;
}

/** How a turn ended. */
export type TurnOutcome =
  /** The agent was done. */
  | "completed"
  /** It was interrupted. */
  | "interrupted";

/** `run.message.delta`. */
export interface MessageDelta {
  /** The message it belongs to. */
  item: string;
  /** A piece of it. */
  text: string;
  /** Where in the message it begins, in bytes. */
  offset: number;
}

/** `run.message.completed`. */
export interface MessageCompleted {
  /** The message. */
  item: string;
  /** All of it. */
  text: string;
  /** Whether it was never completed. Then the text stands in its place, and is nothing that the agent said. */
  brokeOff?: boolean;
}

/** `run.reasoning`: what the agent tells of its thinking. No answer, and bounded. */
export interface Reasoning {
  /** The backend's name for it. */
  item: string;
  /** What it tells. */
  text: string;
}

/** `run.plan.updated`: what the agent means to do, all of it each time. */
export interface PlanUpdated {
  /** The steps, in order. */
  steps: PlanStep[];
}

/** A step of an agent's plan. */
export interface PlanStep {
  /** What it is. */
  text: string;
  /** How far it is. */
  status: PlanStatus;
}

/** How far a step of a plan is. */
export type PlanStatus =
  /** It was not begun. */
  | "pending"
  /** It is being done. */
  | "in_progress"
  /** It is done. */
  | "completed";

/**
 * `run.thread.recorded`: the agent's conversation goes on. All these events of a thread's runs, in order, are the
 * conversation: there is no other record of it.
 */
export interface ThreadRecorded {
  /** The thread. */
  thread: string;
  /** How many messages it had before. */
  after: number;
  /** What comes behind them. */
  messages: unknown[];
  /** What the agent keeps beside them from now on, by key; what it no longer keeps is `null`. */
  state?: Record<string, unknown>;
}

/** `run.tool.call`. */
export interface ToolCall {
  /** The backend's name for it. */
  call: string;
  /** The tool. */
  tool: string;
  /** What it does, in a line. */
  summary: string;
  /** Whether doing it twice is the same as doing it once. */
  idempotent: boolean;
  /** Its arguments. */
  arguments?: unknown;
}

/** `run.tool.output`. */
export interface ToolOutput {
  /** The call. */
  call: string;
  /** `stdout` or `stderr`. */
  stream: string;
  /** A piece of it. */
  text: string;
  /** Where in the stream it begins, in bytes. */
  offset: number;
  /** How many bytes were left out after it. */
  omitted?: number;
  /** The artifact that holds what was left out, as far as that is kept. */
  logPath?: string;
}

/** `run.tool.result`. */
export interface ToolResult {
  /** The call. */
  call: string;
  /** How it went. */
  outcome: ToolOutcome;
  /** The code of the error that ended it, where the agent is ours and one did. */
  code?: Code;
  /** What came of it, in a line. */
  summary: string;
}

/** How a tool call went. */
export type ToolOutcome =
  /** It did what it should. */
  | "succeeded"
  /** It did not. */
  | "failed"
  /** The gate or a person said no. */
  | "denied"
  /** It was stopped, or given up. */
  | "cancelled";

/** `run.file.read`. */
export interface FileRead {
  /** The file, relative to the workspace. */
  path: string;
}

/** `run.diff.ready`: what changed in the run's checkout, found by looking at it. */
export interface DiffReady {
  /** What it starts from. */
  base: string;
  /** What it leads to. */
  target: string;
  /** The first of the files, relative to the workspace. */
  paths: string[];
  /** What it is, in a line. */
  summary: string;
  /** Stands for all that changed, made by the edge. */
  digest?: string;
  /** How much changed. */
  stats?: DiffStats;
  /** Where it is kept. */
  parts?: DiffParts;
}

/** Where the diff of a run is kept. */
export interface DiffParts {
  /** Lists of [`DiffFile`]s, in order. */
  files: BlobId[];
  /** Lists of [`DiffText`]s, by part. */
  texts: BlobId[];
}

/** A blob's id: the SHA-256 of its content. */
export type BlobId = string;

/** `run.patch.proposed`. */
export interface PatchProposed {
  /** The files, relative to the workspace. */
  files: string[];
  /** What it is, in a line. */
  summary: string;
}

/** `run.artifact.ready`. */
export interface ArtifactReady {
  /** Its id. */
  artifactId: string;
  /** What kind of thing it is. */
  kind: string;
  /** What it is, in a line. */
  summary: string;
  /** What its kind says about it. Logs of long ago have artifacts without. */
  facts?: ArtifactFacts;
  /** The name of the file that it is, or would be. */
  name?: string;
  /** What it holds. */
  content?: ArtifactContent;
  /** Who gave it. */
  by?: Who;
}

/** What an artifact is, with what its kind must say. */
export type ArtifactFacts =
  /** What changed between two trees. */
  | {
      kind: "diff";
      /** What it starts from. */
      base: string;
      /** What it leads to. */
      target: string;
      /** The first of the files, relative to the workspace. */
      paths: string[];
      /** What it is, in a line. */
      summary: string;
    }
  /** A change that can be applied. */
  | {
      kind: "patch";
      /** The first of the files, relative to the workspace. */
      files: string[];
      /** What became of it. */
      applyStatus: ApplyStatus;
      /** What asks for applying it, or allowed it. There is none only while it is proposed. */
      approvalId: ApprovalId | null;
    }
  /** A file as it was when it was read. */
  | {
      kind: "file_preview";
      /** The file, relative to the workspace. */
      path: string;
      /** When it was read. */
      readAt: Timestamp;
    }
  /** A picture of a screen. */
  | {
      kind: "screenshot";
      /** How large the screen was. */
      viewport: Viewport;
      /** Which page. */
      route: string;
      /** In which colours, such as `light` or `dark`. */
      theme: string;
      /** In which language, such as `en`. */
      language: string;
      /** Whether somebody looked for what is private in it. */
      privacyReview: PrivacyReview;
    }
  /** Documents that were built. */
  | {
      kind: "generated_docs";
      /** Which page they were built from. */
      sourceRoute: string;
      /** In which language, such as `en`. */
      language: string;
      /** How building them went. */
      buildStatus: BuildStatus;
    }
  /** What a backend and its adapter said to each other, redacted, for whoever looks for a fault. */
  | {
      kind: "debug";
      /** How many lines. */
      lines: number;
      /** How many lines more were left out. */
      omitted: number;
    }
  /** Anything else. */
  | {
      kind: "file";
      /** Where it lies in the workspace, if it does. */
      path?: string;
    };

/** What became of a patch. */
export type ApplyStatus =
  /** It is there to be looked at. */
  | "proposed"
  /** A person wants it. */
  | "approved"
  /** It is being brought to the person's files. */
  | "applying"
  /** It is there. */
  | "applied"
  /** A person does not want it. */
  | "rejected"
  /** It could not be applied. */
  | "failed"
  /** It was taken back. */
  | "undone";

/** The size of a screen, in pixels. */
export interface Viewport {
  /** How wide. */
  width: number;
  /** How high. */
  height: number;
}

/** Whether somebody looked for what is private in a picture. */
export type PrivacyReview =
  /** Nobody has yet. */
  | "pending"
  /** A person did, and it may be seen. */
  | "passed"
  /** A person did, and it shows something private. */
  | "failed";

/** How building documents went. */
export type BuildStatus =
  /** They are whole. */
  | "succeeded"
  /** They are not. */
  | "failed";

/** What an artifact holds, as it is stored. */
export interface ArtifactContent {
  /** Where it is kept, and its digest. */
  blob: BlobId;
  /** How long it is. */
  bytes: number;
  /** What it was found to be by looking at it. */
  mediaType: string;
  /** Whether redaction changed what was given. */
  redacted: boolean;
}

/** `run.preview.ready`: a file can be looked at as it was. */
export interface PreviewReady {
  /** What is shown, relative to the workspace. */
  path: string;
  /** When it was read. */
  readAt: Timestamp;
  /** The artifact that holds it. */
  artifactId?: string;
}

/** `runtime.status`. */
export interface RuntimeStatus {
  /** What the backend is doing: `starting`, `ready`, `resumed`, `parked`, `ended`, … */
  phase: string;
  /** The backend profile. */
  profile: string;
  /** Its kind. */
  backendKind: string;
  /** The protocol that it speaks. */
  protocol: string;
  /** What it can do. Older logs do not say it. */
  capability?: Capability;
  /** The model, where known. */
  model?: string;
  /** The version that really runs, where known. */
  version?: string;
  /** The backend's conversation, by which it can be resumed. */
  thread?: string;
  /** Tokens and cost so far, where known. */
  usage?: Usage;
  /** How long no hub looked after the run until now, where that was so. It counts toward no deadline. */
  awayMs?: number;
}

/** What a backend can do. */
export interface Capability {
  /** How far it can be resumed. */
  resumes: Resumes;
  /** Whether it asks before it acts. */
  asks: boolean;
  /** Whether it tells of each step that it takes. */
  tellsSteps: boolean;
  /** Whether it works in a checkout, which is looked at when it is done. */
  checkout: boolean;
  /** Whether it can be pointed at the edge's gateway. */
  gateway: boolean;
}

/** How far a backend can be resumed after its process died. */
export type Resumes =
  /** It keeps its own conversation and knows from it what it has done. */
  | "thread"
  /** Between two steps. A step that has begun and has no result may have been done or not. */
  | "steps"
  /** Not at all. */
  | "never";

/** `runtime.died`: the backend's process is gone in the middle of its work, and is opened again. */
export interface RuntimeDied {
  /** What is known about it. */
  message: string;
}

/** `runtime.error`, `runtime.unavailable`, `runtime.timeout` and `schema.validation_failed`. */
export interface RuntimeError {
  /** What kind of failure. */
  failureKind?: FailureKind;
  /** What happened. */
  message: string;
  /** Whether the backend tries again by itself. */
  retrying: boolean;
}

/** Why a run failed. */
export interface Failure {
  /** The run's code. */
  code: Code;
  /** The backend's failure kind, where a backend failed. */
  failureKind?: FailureKind;
  /** What happened, safe to show. */
  message: string;
  /** What to do first: the failure kind's, where there is one. */
  recovery: string;
  /** The code of what our own agent loop failed with, where it did. */
  cause?: Code;
  /** The limit of its budget that the run went beyond. */
  exceeded?: Exceeded;
}

/** What a look at the checkout found, and what a person decided about it. */
export interface Review {
  /** How many turns had begun: after a further one it is out of date. */
  turns: number;
  /** What it found. */
  diff: DiffReady;
  /** What asks for applying it. */
  approvalId?: ApprovalId;
  /** What became of it. */
  status: ApplyStatus;
  /** Which part was approved; without it all of it. */
  selection?: SelectedFile[];
  /** Stands for the part that is or was applied, as the edge found it. */
  appliedDigest?: string;
  /** The commit that holds it. */
  commit?: string;
}

/**
 * A fact in a run's log. Fields may be added, none removed; absent ones are left out; readers ignore what they do not
 * know.
 */
export interface EventOf<Type extends string, Payload> {
  /** Its place in the run's log: 1, 2, 3, … without a gap. */
  sequence: number;
  /** The SHA-256 of the stored bytes of the event before it, in hexadecimal; the first event has none. */
  prevHash?: string;
  /** Its own id. */
  id: EventId;
  /** What happened, as in `run.started`. */
  type: Type;
  /** The run. */
  runId: RunId;
  /** The session, where the event enters one. */
  sessionId?: SessionId;
  /** The agent profile. */
  agentId?: string;
  /** When it was recorded. */
  timestamp: Timestamp;
  /** The version of the payload's shape. */
  v: number;
  /** What there is to say about it. */
  payload: Payload;
}

/** A fact in a run's log. */
export type EventId = string;

/** What an event of each type says. */
export interface Payloads {
  "run.created": Created;
  "run.planned": Planned;
  "run.accepted": Accepted;
  "run.preparing": Preparing;
  "run.started": Started;
  "run.secrets.projected": SecretsProjected;
  "run.approval.requested": ApprovalRequested;
  "run.approval.resolved": ApprovalResolved;
  "run.approval.snoozed": ApprovalSnoozed;
  "run.approval.used": ApprovalUsed;
  "run.gate.judged": GateJudged;
  "run.applying": Applying;
  "run.applied": Applied;
  "run.completed": Completed;
  "run.failed": Failed;
  "run.cancelled": Cancelled;
  "run.degraded": Degraded;
  "run.command.received": CommandReceived;
  "run.command.heard": CommandHeard;
  "run.cancel.requested": CancelRequested;
  "run.turn.started": TurnStarted;
  "run.turn.ended": TurnEnded;
  "run.message.delta": MessageDelta;
  "run.message.completed": MessageCompleted;
  "run.reasoning": Reasoning;
  "run.plan.updated": PlanUpdated;
  "run.thread.recorded": ThreadRecorded;
  "run.tool.call": ToolCall;
  "run.tool.output": ToolOutput;
  "run.tool.result": ToolResult;
  "run.file.read": FileRead;
  "run.diff.ready": DiffReady;
  "run.patch.proposed": PatchProposed;
  "run.artifact.ready": ArtifactReady;
  "run.preview.ready": PreviewReady;
  "runtime.status": RuntimeStatus;
  "runtime.died": RuntimeDied;
  "runtime.error": RuntimeError;
  "runtime.unavailable": RuntimeError;
  "runtime.timeout": RuntimeError;
  "schema.validation_failed": RuntimeError;
}

/** The types of events. A log can hold others, of a later version. */
export type EventType = keyof Payloads;

/** Every type, in the order of the Rust source. */
export const EVENT_TYPES = [
  "run.created",
  "run.planned",
  "run.accepted",
  "run.preparing",
  "run.started",
  "run.secrets.projected",
  "run.approval.requested",
  "run.approval.resolved",
  "run.approval.snoozed",
  "run.approval.used",
  "run.gate.judged",
  "run.applying",
  "run.applied",
  "run.completed",
  "run.failed",
  "run.cancelled",
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
] as const satisfies readonly EventType[];

/** A fact in a run's log, told apart by its `type`. */
export type RunEvent = { [Type in EventType]: EventOf<Type, Payloads[Type]> }[EventType];
