// Generated from the Rust types: do not edit. Made again by
// RUNYARD_WRITE_GENERATED=1 cargo test -p runyard-testkit -p runyard-cli --test typescript

/** The actions of a hub, each with what it takes and what it gives. */
export interface HubActions {
  /** List the agent profiles that a run can be given to. */
  agent_list: { input: AgentListInput; output: AgentListOutput };
  /** List what waits for a person's decision, oldest first, of one run or of all. */
  approval_list: { input: ApprovalListInput; output: ApprovalListOutput };
  /** Decide what a run asks. The first answer counts; the same again is fine. */
  approval_resolve: { input: ApprovalResolveInput; output: ApprovalResolveOutput };
  /** Show an approval: exactly what is asked, why, and who decided. */
  approval_show: { input: ApprovalShowInput; output: ApprovalShowOutput };
  /**
   * Leave an approval for later: it stays open, is not listed for a while, and expires later by as much. It is no
   * rejection.
   */
  approval_snooze: { input: ApprovalSnoozeInput; output: ApprovalSnoozeOutput };
  /** Add something that a run produced to be looked at: a file, a screenshot, built documents. */
  artifact_add: { input: ArtifactAddInput; output: ArtifactAddOutput };
  /** Show an artifact: what it is, and the beginning of it if it is text. */
  artifact_get: { input: ArtifactGetInput; output: ArtifactGetOutput };
  /** List what a run produced to be looked at: its own diff and patch, and the artifacts that were added. */
  artifact_list: { input: ArtifactListInput; output: ArtifactListOutput };
  /** Read who did what: decisions, changes of policy, tokens and workspaces, logins, refusals. */
  audit_list: { input: AuditListInput; output: AuditListOutput };
  /**
   * Check that the audit is whole: every entry follows from the one before it, and tokens and rules are what it leads
   * to.
   */
  audit_verify: { input: AuditVerifyInput; output: AuditVerifyOutput };
  /**
   * Look on the edge whether a backend profile could be used now: its program and version, its secrets by name, what
   * confines it, and whether it answers when it is started. Nothing of it is left, and no provider is called.
   */
  backend_check: { input: BackendCheckInput; output: BackendCheckOutput };
  /** List the backend profiles: what each can do and what bounds it. No secret is read for it. */
  backend_list: { input: BackendListInput; output: BackendListOutput };
  /** Show a backend profile: what it can do and what bounds it. No secret is read for it. */
  backend_show: { input: BackendShowInput; output: BackendShowOutput };
  /** List the edges that were seen since the hub began. */
  edge_list: { input: EdgeListInput; output: EdgeListOutput };
  /** Explain an error code: what it means for a caller and what to do first. */
  error_explain: { input: ErrorExplainInput; output: ErrorExplainOutput };
  /** List every error code with its status, exit code and what to do first. */
  error_list: { input: ErrorListInput; output: ErrorListOutput };
  /** Say whether the hub can do its work: its store answers, and an edge is there. */
  health: { input: HealthInput; output: HealthOutput };
  /**
   * Add a rule to the policy, after a look at what else it would allow. It reaches running runs at once; a rule that
   * denies wins over every other.
   */
  policy_add: { input: PolicyAddInput; output: PolicyAddOutput };
  /** Remove a rule that somebody added. Rules of the configuration are changed there. */
  policy_remove: { input: PolicyRemoveInput; output: PolicyRemoveOutput };
  /** Show the policy that counts now: the configuration's rules and those that people added. */
  policy_show: { input: PolicyShowInput; output: PolicyShowOutput };
  /**
   * Say how the gate would judge a request now, and why; or what a rule would have changed for what agents asked for
   * lately. Nothing is done and nobody is asked.
   */
  policy_test: { input: PolicyTestInput; output: PolicyTestOutput };
  /** Review a run: what was asked, what the agent did, what it changed, and what to look at. */
  review_run: { input: ReviewRunInput; output: ReviewRunOutput };
  /** Apply what a run changed, after its end: a new run, which asks before it does. */
  run_apply: { input: RunApplyInput; output: RunApplyOutput };
  /**
   * End a run. What it waits for is withdrawn, and what it started is stopped. While something is applied the run ends
   * as soon as it is taken back, or found to be all in place.
   */
  run_cancel: { input: RunCancelInput; output: RunCancelOutput };
  /**
   * Tell a live run something: a further turn, a word into the turn that runs, its end, or that the run is not to be
   * kept open.
   */
  run_command: { input: RunCommandInput; output: RunCommandOutput };
  /** Start a run: an agent works on a task in a workspace. */
  run_create: { input: RunCreateInput; output: RunCreateOutput };
  /** Show what a run changed: how much, and which files. */
  run_diff: { input: RunDiffInput; output: RunDiffOutput };
  /** Show what a run changed in one file, hunk by hunk. */
  run_diff_file: { input: RunDiffFileInput; output: RunDiffFileOutput };
  /** Read what happened in a run, in order. */
  run_events: { input: RunEventsInput; output: RunEventsOutput };
  /** List runs, newest first. */
  run_list: { input: RunListInput; output: RunListOutput };
  /** Derive a run from its log again, and say where what is stored differs. */
  run_replay: { input: RunReplayInput; output: RunReplayOutput };
  /** Show a run: where it stands, what it was asked for, and what came of it. */
  run_show: { input: RunShowInput; output: RunShowOutput };
  /** Take back what a run applied: a new run, which asks before it does. */
  run_undo: { input: RunUndoInput; output: RunUndoOutput };
  /**
   * Close a session whose runs are all over: what agents keep of its conversation is removed, and what was recorded
   * stays.
   */
  session_close: { input: SessionCloseInput; output: SessionCloseOutput };
  /** List the sessions of the latest 20,000 runs. */
  session_list: { input: SessionListInput; output: SessionListOutput };
  /** Summarise which runs failed lately, and why. */
  summarise_failures: { input: SummariseFailuresInput; output: SummariseFailuresOutput };
  /** Make a named token with a role. Its text is shown once. */
  token_create: { input: TokenCreateInput; output: TokenCreateOutput };
  /** List the named tokens: who may come in, and as what. */
  token_list: { input: TokenListInput; output: TokenListOutput };
  /** Revoke a token: its holder is not let in again. */
  token_revoke: { input: TokenRevokeInput; output: TokenRevokeOutput };
  /** Show which version of Runyard this is. */
  version_show: { input: VersionShowInput; output: VersionShowOutput };
  /** Allow runs to work on a directory. Adding it again gives what is there. */
  workspace_add: { input: WorkspaceAddInput; output: WorkspaceAddOutput };
  /** List the workspaces that runs may work on. */
  workspace_list: { input: WorkspaceListInput; output: WorkspaceListOutput };
  /** Take a workspace off the list. Its files and its past runs stay as they are. */
  workspace_remove: { input: WorkspaceRemoveInput; output: WorkspaceRemoveOutput };
}

/** One action with its input. */
export interface ActionTask {
  /** The action's name. */
  action: string;
  /** Its input. */
  input?: unknown;
}

export type AgentListInput = Record<string, never>;

export interface AgentListOutput {
  /** The agent profiles, by id. */
  agents: AgentView[];
}

/** An agent profile: what a user picks. */
export interface AgentView {
  /** Its id. */
  id: string;
  /** Its name for people. */
  label: string;
  /** The backend profile that it runs on unless the caller names another. */
  backendProfile: string;
  /** What it can do. */
  capabilities: string[];
  /** The gate's preset: default or strict. */
  preset: string;
  /** What a rejected approval means: cancel or continue. */
  onReject: string;
  /** What its runs may do unless the caller says otherwise. */
  executionPolicy: unknown;
  /** How many of its runs may be active at a time. */
  runsMax: number;
}

export type ApplyStatusInput = "proposed" | "approved" | "applying" | "applied" | "rejected" | "failed" | "undone";

export type ApprovalInput = "ask" | "never";

export interface ApprovalListInput {
  /** Which: those that are open. One that is over stands in its run's events. */
  state?: Listed;
  /** Only of this run. */
  run?: string | null;
  /** Whether also what was snoozed is listed. */
  snoozed?: boolean;
  /** Only those after this one: the `next` of the page before. */
  after?: string | null;
  /** How many at most. */
  limit?: number;
}

export interface ApprovalListOutput {
  /** The approvals, oldest first. */
  approvals: ApprovalView[];
  /** Where the next page begins; absent on the last. */
  next?: string;
}

export interface ApprovalResolveInput {
  /** The approval's id. */
  id: string;
  /** Yes or no. */
  decision: Decided;
  /** The digest of what was looked at, as the approval shows it. */
  digest: string;
  /** Why. */
  reason?: string | null;
  /** How far the decision reaches. */
  scope?: Reach;
  /** The answer to a question, by its schema. */
  answer?: unknown;
  /**
   * Which part of the changes is approved: files by their id in the diff, each whole or by hunk. Without it all of them,
   * but for the protected ones.
   */
  selection?: SelectedInput[] | null;
  /** What is said on lines of the changes; the agent hears it with `revise`. */
  comments?: CommentInput[];
  /** With a rejection: whether the agent is to try again, with the reason and the comments. */
  revise?: boolean;
}

export interface ApprovalResolveOutput {
  /** The approval. */
  approval: ApprovalView;
  /** Whether something of what was said with the decision was redacted: the agent is told it as it is stored. */
  redacted: boolean;
}

export interface ApprovalShowInput {
  /** The approval's id. */
  id: string;
}

export interface ApprovalShowOutput {
  /** The approval. */
  approval: ApprovalView;
}

export interface ApprovalSnoozeInput {
  /** The approval's id. */
  id: string;
  /** For how long, in milliseconds. */
  forMs: number;
  /** Why. */
  reason?: string | null;
}

export interface ApprovalSnoozeOutput {
  /** The approval. */
  approval: ApprovalView;
}

/** An approval. What is absent is left out. */
export interface ApprovalView {
  /** Its id. */
  id: string;
  /** The run that waits for it. */
  runId: string;
  /** Where it stands. */
  state: "open" | "approved" | "rejected" | "expired" | "withdrawn";
  /** What is asked in one sentence: verb, object, place and how far a yes reaches. */
  title: string;
  /** What is asked, exactly; what was redacted is a placeholder. */
  request: {
    kind: string;
  };
  /** Whether something in the request was redacted. */
  redacted: boolean;
  /** Stands for the content: whoever decides says what they looked at by giving it back. */
  digest: string;
  /** How much is at stake: low, medium or high. */
  risk: string;
  /** Why it is asked and not simply done. */
  reason: string;
  /** What else there is to know, as which part only the sandbox bounds. */
  notes?: string[];
  /** Why it can only be rejected by now: a rule denies it. */
  denied?: string;
  /** Where. */
  workspace: WorkspaceView;
  /** The agent that asks. */
  agentId: string;
  /** When no answer counts as a rejection. */
  expiresAt: string;
  /** Until when nobody wants to be reminded of it. */
  snoozedUntil?: string;
  /** Who decided. */
  decidedBy?: WhoView;
  /** What they said about it. */
  decisionReason?: string;
  /** How far the decision reaches. */
  scope?: string;
  /** The answer to a question. */
  answer?: unknown;
}

export interface ArtifactAddInput {
  /** The run's id. It has not ended. */
  id: string;
  /** The name of the file that it is, or would be; no path. */
  name: string;
  /** What it is, in a line. */
  summary?: string | null;
  /** Its kind, with what that must say. */
  facts: FactsInput;
  /** What it holds, as text. Either this or base64. */
  text?: string | null;
  /** What it holds, in base64. Either this or text. */
  base64?: string | null;
}

export interface ArtifactAddOutput {
  /** The artifact. */
  artifact: ArtifactView;
}

export interface ArtifactGetInput {
  /** The run's id. */
  id: string;
  /** The artifact's id in the run. */
  artifact: string;
  /** Whether all of its content is given too, in base64. */
  content?: boolean;
}

export interface ArtifactGetOutput {
  /** The artifact. */
  artifact: ArtifactView;
  /** What can be shown of it at once; absent where nothing can. */
  preview?: PreviewView;
  /** All of its content, where it was asked for. */
  base64?: string;
}

export interface ArtifactListInput {
  /** The run's id. */
  id: string;
}

export interface ArtifactListOutput {
  /** The run's own diff and patch, if it changed something, and what was added to it, oldest first. */
  artifacts: ArtifactView[];
}

/** An artifact. */
export interface ArtifactView {
  /** Its id in the run. The run's own changes are `diff` and `patch`. */
  id: string;
  /** The run. */
  runId: string;
  /** What kind of thing it is: diff, patch, file_preview, screenshot, generated_docs or file. */
  kind: string;
  /** What it is, in a line. */
  summary: string;
  /** What its kind says about it. */
  facts?: unknown;
  /** The name of the file that it is, or would be. */
  name?: string;
  /** What its bytes were found to be. */
  mediaType?: string;
  /** How long it is. */
  bytes?: number;
  /** The SHA-256 of what is kept. */
  digest?: string;
  /** Whether redaction changed what was given. */
  redacted: boolean;
  /** Whether its content may be private, and so is for people and for the agent that gave it only. */
  peopleOnly: boolean;
  /** Where its content is read. */
  contentPath: string;
  /** Who gave it; absent for the run's own changes. */
  by?: WhoView;
  /** When it was recorded; absent for the run's own changes. */
  recordedAt?: string;
}

export interface AuditListInput {
  /** Only entries after this place: the sequence of the last one that is known. */
  after?: number;
  /** How many at most. */
  limit?: number;
}

export interface AuditListOutput {
  /** The entries, oldest first. */
  entries: EntryView[];
  /** The place to go on after; absent where there is nothing more yet. */
  next?: number;
}

export type AuditVerifyInput = Record<string, never>;

export interface AuditVerifyOutput {
  /** How many entries were looked at; each is chained to the one before it. */
  entries: number;
  /** The hash of the last one. Kept elsewhere, it shows later whether the record was cut or written anew. */
  head?: string;
}

/** One backend profile. */
export interface BackendCheckInput {
  /** The backend profile's name. */
  profile: string;
}

export interface BackendCheckOutput {
  /** The backend profile. */
  profile: string;
  /** The edge that looked. */
  edge: string;
  /** Whether nothing is missing. */
  ok: boolean;
  /** What was found, part by part. */
  checks: CheckView[];
}

export type BackendListInput = Record<string, never>;

export interface BackendListOutput {
  /** The backend profiles, by name. */
  backends: BackendView[];
}

/** One backend profile. */
export interface BackendShowInput {
  /** The backend profile's name. */
  profile: string;
}

export interface BackendShowOutput {
  /** The backend profile. */
  backend: BackendView;
}

/** A backend profile: what it can do and what bounds it, never a secret's value. */
export interface BackendView {
  /** Its name. */
  profile: string;
  /** The kind of backend. */
  backendKind: string;
  /** The protocol that it speaks. */
  protocol: string;
  /** How. */
  transport: string;
  /** The program that it starts and its arguments; none where it starts none. */
  command: string[];
  /** The names of the secrets that it cannot do without. */
  requiredSecretKeys: string[];
  /** The names of those that it is given where there are any. */
  optionalSecretKeys: string[];
  /** What keeps its runs apart from everything else. */
  isolation: IsolationView;
  /** What it can do. */
  capabilities: CapabilitiesView;
  /** The model, where the profile names one. */
  model?: string;
  /** Where its provider listens, where the profile says so. */
  baseUrl?: string;
  /** What its provider speaks: responses or chat; absent where it has no provider. */
  wire?: string;
  /** Whether it reaches its provider through the edge's gateway. */
  gateway: boolean;
  /** Whether what it says is kept raw, but redacted. */
  debugRaw: boolean;
}

export type BudgetInput =
  /** What it may cost, in US dollars. */
  | string
  /** The limits. */
  | BudgetLimitsInput;

export interface BudgetLimitsInput {
  /** What it may cost, in US dollars, as in "2.50". */
  costUsd?: string | null;
  /** How many tokens, in and out together. */
  tokens?: number | null;
}

export type BuildStatusInput = "succeeded" | "failed";

export interface CapabilitiesView {
  /** How far it can be resumed after its process died: thread, steps or never. */
  resumes: unknown;
  /** Whether it asks before it acts. */
  asks: boolean;
  /** Whether it tells of each step that it takes. */
  tellsSteps: boolean;
  /** Whether it works in a checkout, which is looked at when it is done. */
  checkout: boolean;
  /** Whether it can be pointed at the edge's gateway. */
  gateway: boolean;
}

/** A request of the past that would be judged otherwise. */
export interface ChangedRequest {
  /** What was asked for. */
  what: string;
  /** Its kind. */
  kind: string;
  /** What becomes of it without the rule. */
  before: EffectWord;
  /** What would become of it. */
  after: EffectWord;
  /** How often it was asked for. */
  times: number;
  /** How a person decided, where one was asked. */
  decided?: string;
  /** The last run that asked for it. */
  runId: string;
  /** When it did. */
  at: string;
}

/** Something that would be judged otherwise. */
export interface ChangedSample {
  /** What. */
  what: string;
  /** What becomes of it without the rule. */
  before: EffectWord;
  /** What would become of it. */
  after: EffectWord;
}

export type ChangesInput = "ask" | "keep";

export interface CheckView {
  /** Which part: program, secrets, sandbox or handshake. */
  check: string;
  /** Whether a run could begin as far as this goes. */
  ok: boolean;
  /** What was found. */
  found: string;
  /** What to do about it. */
  next?: string;
}

export interface CommandView {
  /** Its id. */
  id: string;
  /** The run that it was given to. */
  runId: string;
  /** What. */
  kind: Instruction;
}

/** A word on a line. */
export interface CommentInput {
  /** The file's id in the diff. */
  file: string;
  /** The line in the new text. */
  line?: number | null;
  /** What is said. */
  text: string;
}

export interface Database {
  /** Whether it answers. */
  ok: boolean;
  /** What is wrong with it. */
  code?: string;
}

/** A person's decision. */
export type Decided =
  /** It may be done. */
  | "approve"
  /** It may not be done. */
  | "reject";

/** What cannot be relied on in a run. */
export interface DegradedView {
  /** Every reason, in the order in which it was found. */
  reason: string;
}

export interface DiffView {
  /** What it starts from. */
  base: string;
  /** What it leads to. */
  target: string;
  /** Stands for all of it. */
  digest: string;
  /** What it is, in a line. */
  summary: string;
  /** How many files changed. */
  files: number;
  /** Lines that are new. */
  insertions: number;
  /** Lines that are gone. */
  deletions: number;
  /** How many files count only where they are chosen by themselves. */
  protected: number;
  /** How many things in the checkout can be no change. */
  problems: number;
  /** What became of it: proposed, approved, applying, applied, rejected, failed or undone. */
  applyStatus: unknown;
  /** The approval that asks for applying it. */
  approvalId?: string;
  /** The commit that holds it. */
  commit?: string;
}

/** Something that is stored otherwise than the log says. */
export interface DifferenceView {
  /** What: a field of the run, an approval, an event by its place, or the conversation. */
  field: string;
  /** What the log says, or has to say there. */
  derived: unknown;
  /** What is stored. */
  stored: unknown;
}

export interface EdgeCounts {
  /** How many are connected. */
  connected: number;
  /** How many were seen since the hub began. */
  known: number;
}

export type EdgeListInput = Record<string, never>;

export interface EdgeListOutput {
  /** The edges, by id. */
  edges: EdgeView[];
}

/** An edge: what executes next to the files. */
export interface EdgeView {
  /** Its id. */
  id: string;
  /** Its version. */
  version: string;
  /** What confines the processes that it starts. */
  sandbox: string;
  /** Whether it can be reached. */
  connected: boolean;
  /** How many runs are active on it. */
  activeRuns: number;
}

/** What a rule does. */
export type EffectWord =
  /** It is done. */
  | "allow"
  /** A person decides. */
  | "ask"
  /** It is not done. */
  | "deny";

/** A state that a run entered. */
export interface EnteredView {
  /** Which. */
  state:
    | "created"
    | "planned"
    | "accepted"
    | "preparing"
    | "running"
    | "needs_approval"
    | "applying"
    | "completed"
    | "failed"
    | "cancelled";
  /** By the event at this place. */
  sequence: number;
  /** When. */
  at: string;
}

/** One entry of the audit. */
export interface EntryView {
  /** Its place. */
  sequence: number;
  /** When. */
  at: string;
  /** What kind of thing happened. */
  type: string;
  /** Who did it. */
  by: unknown;
  /** What they did. */
  what: unknown;
  /** The hash of the stored entry, which stands for all entries before it too. */
  hash: string;
}

export interface ErrorExplainInput {
  /** The code, as an envelope or a run shows it. */
  code: string;
}

export interface ErrorExplainOutput {
  /** The code. */
  code: string;
  /** transient, permanent, fail-fast or conflict. */
  class: string;
  /** The HTTP status. */
  http: number;
  /** The exit code of a command. */
  exit: number;
  /** The JSON-RPC code. */
  json_rpc: number;
  /** Whether and how to repeat. */
  retry: string;
  /** What to do first. */
  recovery: string;
}

export type ErrorListInput = Record<string, never>;

export interface ErrorListOutput {
  /** Every code that Runyard itself can give. */
  errors: ErrorRow[];
}

export interface ErrorRow {
  /** The code. */
  code: string;
  /** transient, permanent, fail-fast or conflict. */
  class: string;
  /** The HTTP status. */
  http: number;
  /** The exit code of a command. */
  exit: number;
  /** The JSON-RPC code. */
  json_rpc: number;
  /** Whether and how to repeat. */
  retry: string;
  /** What to do first. */
  recovery: string;
}

/** How a run is to be executed. What is left out is the agent profile's. */
export interface ExecutionPolicyInput {
  /** How its processes are confined. */
  sandbox?: SandboxInput | null;
  /** Whether it may use the network. */
  network?: NetworkInput | null;
  /** Whether people may be asked; never means that what would be asked is denied. */
  approval?: ApprovalInput | null;
  /** How long the whole run may take, not counting the time in which it waits for people. */
  timeoutMs?: number | null;
  /** How long it may be silent. */
  idleMs?: number | null;
  /**
   * How long it stays open for a further turn after one has ended, still among the active runs and within timeoutMs;
   * without it the run ends with its last turn.
   */
  keepOpenMs?: number | null;
  /** What it may use at most, as far as its backend says what it uses. */
  budget?: BudgetInput | null;
  /** What becomes of what it changed: a person is asked to apply it, or it stays in the checkout for later. */
  changes?: ChangesInput | null;
  /** The secrets that it may be given: those of its own backend profile, which are taken where this is left out. */
  secretScope?: SecretScopeInput | null;
}

/** What an artifact is, with what its kind must say. */
export type FactsInput =
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
      applyStatus: ApplyStatusInput;
      /** What asks for applying it, or allowed it. It may be left out only while the patch is proposed. */
      approvalId?: string | null;
    }
  /** A file as it was when it was read. */
  | {
      kind: "file_preview";
      /** The file, relative to the workspace. */
      path: string;
      /** When it was read, as in 2026-01-31T12:00:00.000Z. */
      readAt: string;
    }
  /** A picture of a screen. */
  | {
      kind: "screenshot";
      /** How large the screen was. */
      viewport: ViewportInput;
      /** Which page. */
      route: string;
      /** In which colours, such as light or dark. */
      theme: string;
      /** In which language, such as en. */
      language: string;
      /** Whether somebody looked for what is private in it. Only a person can say that it passed. */
      privacyReview: PrivacyReviewInput;
    }
  /** Documents that were built. */
  | {
      kind: "generated_docs";
      /** Which page they were built from. */
      sourceRoute: string;
      /** In which language, such as en. */
      language: string;
      /** How building them went. */
      buildStatus: BuildStatusInput;
    }
  /** What a backend and its adapter said to each other, for whoever looks for a fault. */
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
      path?: string | null;
    };

/** A file that changed. */
export interface FileView {
  /** Names it in the diff. */
  id: string;
  /** Where it is, relative to the workspace. */
  path: string;
  /** Where it came from, where it was renamed or copied. */
  oldPath?: string;
  /** What happened: added, deleted, modified, renamed, copied or retyped. */
  change: string;
  /** What it was, as git writes modes. */
  oldMode?: string;
  /** What it is. */
  newMode?: string;
  /** How its content is shown: text, `binary`, `too_large`, or same where it did not change. */
  content: string;
  /** Lines that are new. */
  insertions: number;
  /** Lines that are gone. */
  deletions: number;
  /** How many hunks there are to choose from: 1, 2, 3, … */
  hunks: number;
  /** Its size before. */
  oldBytes: number;
  /** Its size after. */
  newBytes: number;
  /** Whether it counts only where it is chosen by itself, since it configures who may do what. */
  protected: boolean;
}

export type HealthInput = Record<string, never>;

export interface HealthOutput {
  /** ok, or degraded where something is missing. */
  status: string;
  /** The hub's version. */
  version: string;
  /** The store. */
  database: Database;
  /** The edges. */
  edges: EdgeCounts;
}

/** A piece of a file that changed, with the lines around it. */
export interface HunkView {
  /** Names it in its file: 1, 2, 3, … */
  id: number;
  /** Where it begins in the old text. */
  oldStart: number;
  /** Where it begins in the new text. */
  newStart: number;
  /** Its lines. */
  lines: LineView[];
}

/** What can be said to a live run. */
export type Instruction =
  /** A further turn, after the one that runs. */
  | "turn"
  /** A word into the turn that runs. */
  | "steer"
  /** The end of the turn that runs. */
  | "interrupt"
  /** The end of a run that is kept open, as soon as no turn runs or waits. */
  | "finish";

export interface IsolationView {
  /** What has a home of its own: each session and profile. */
  home: string;
  /** How it comes to its secrets: gateway, projected or none. */
  credentials: string;
  /** What bounds its processes on the edge of this hub. */
  sandbox: string;
  /** What bounds their network. */
  network: string;
}

export interface JudgedPart {
  /** The command, the path, or whatever else it is. */
  what: string;
  /** What would become of it. */
  effect: EffectWord;
  /** Why. */
  reason: string;
}

/** What a rule is about. */
export type KindWord =
  | "any"
  | "read"
  | "write"
  | "patch"
  | "shell"
  | "network"
  | "git_commit"
  | "git_push"
  | "publish"
  | "deploy"
  | "secret"
  | "action";

/** A line of a hunk. */
export interface LineView {
  /** Context, added or removed. */
  kind: string;
  /** Its number in the old text; absent where it is new. */
  old?: number;
  /** Its number in the new text; absent where it is gone. */
  new?: number;
  /** What it says. */
  text: string;
}

/** Which approvals are listed. */
export type Listed = "open";

/** Time, tokens and cost. */
export interface MetricsView {
  /** From creation to the end, or to the last event. */
  wallMs: number;
  /** The same without the time in which it waited for people. */
  activeMs: number;
  /** Tokens in, where known. */
  inputTokens?: number;
  /** Tokens out, where known. */
  outputTokens?: number;
  /** What it cost in US dollars, where known. */
  costUsd?: number;
}

export type NetworkInput = "deny" | "ask" | "allow";

/** Where a run would write. */
export type PlaceWord =
  /** In a checkout of its own. */
  | "checkout"
  /** In the workspace itself. */
  | "in_place";

/** A rule as a caller writes it. */
export interface PolicyAddInput {
  /** What it does; deny wins over everything. */
  effect: EffectWord;
  /** What it is about. */
  kind: KindWord;
  /** Which of these: a path, a command, a host or a name, with `*`; all without it. */
  match?: string | null;
  /** For which agent profile; for all without it. */
  agent?: string | null;
  /** For which workspace, by its label; for all without it. */
  workspace?: string | null;
  /** How long it holds. */
  scope?: ScopeWord;
  /** For which run, with scope run or once. */
  run?: string | null;
  /** For which session, with scope session. */
  session?: string | null;
  /** When it ends (RFC 3339). */
  expires?: string | null;
  /** Whether it is only shown what the rule would change. Nothing is stored then. */
  dryRun?: boolean;
}

export interface PolicyAddOutput {
  /** The rule. */
  rule: RuleView;
  /** What it covers, in words. */
  covers: string;
  /** What else may have been meant, where the pattern says less than it may seem to. */
  hint?: string;
  /** What it changes for what agents asked for lately, and for what they may well ask for. */
  preview?: Preview;
  /** Whether it was only looked at, and is not stored. */
  dryRun: boolean;
  /** The version of the policy from now on. */
  version: number;
}

export interface PolicyRemoveInput {
  /** The stored rule's id. */
  id: string;
}

export interface PolicyRemoveOutput {
  /** The rule that is gone. */
  id: string;
  /** The version of the policy from now on. */
  version: number;
}

export type PolicyShowInput = Record<string, never>;

export interface PolicyShowOutput {
  /** The policy. */
  policy: PolicyView;
}

export interface PolicyTestInput {
  /**
   * The agent profile that would ask: needed with a command or a request where no run is named. At the command line
   * "demo" is meant without it.
   */
  agent?: string | null;
  /**
   * The workspace in which it would ask: id, label or an absolute path inside it. Needed like the agent; at the command
   * line the current directory is meant without it.
   */
  workspace?: string | null;
  /** The run that would ask, so that rules of its own and of its session count too. It stands for agent and workspace. */
  run?: string | null;
  /**
   * A rule to try, in words: effect, kind and match, as in `allow shell cargo test *`. It counts as if it were added;
   * without a command or a request it is tried on what agents asked for lately.
   */
  rule?: string | null;
  /** A command line, as a short way to ask for {"kind": "shell"}. */
  command?: string | null;
  /** What it would ask for, by its kind. */
  request?: {
    kind: string;
    [key: string]: unknown;
  };
  /** Where it would write. */
  place?: PlaceWord;
}

export interface PolicyTestOutput {
  /** What would become of it. */
  effect: EffectWord;
  /** Why, in a sentence. */
  reason: string;
  /** How much is at stake: low, medium or high. */
  risk: string;
  /** The parts of it, each with what would become of it. */
  parts: JudgedPart[];
  /** What else there is to know, as which part only the sandbox bounds. */
  notes: string[];
  /** The version of the policy that was asked. */
  policyVersion: number;
  /** What the rule that is tried would have changed. */
  replay?: Preview;
}

export interface PolicyView {
  /** Grows with every change of the stored rules. */
  version: number;
  /** What is done where no rule speaks: default or strict. An agent profile may be stricter. */
  preset: string;
  /** The rules of the configuration. */
  rules: RuleView[];
  /** The rules that people added. */
  stored: RuleView[];
}

/** What a rule would change. */
export interface Preview {
  /** How many requests of the past were judged anew. */
  requests: number;
  /** Of how many runs, the newest first. */
  runs: number;
  /** Whether there are older ones that were not looked at. */
  more: boolean;
  /** The requests that would be judged otherwise. */
  changed: ChangedRequest[];
  /** How many further ones there are. */
  notShown: number;
  /** What else would be judged otherwise, of a list of things that are often asked for or that hurt. */
  also: ChangedSample[];
}

/** What can be shown of an artifact at once. */
export interface PreviewView {
  /** The beginning of a text. */
  text?: string;
  /** Whether there is more of the text than is shown. */
  truncated: boolean;
  /** The width of a picture. */
  width?: number;
  /** The height of a picture. */
  height?: number;
}

export type PrivacyReviewInput = "pending" | "passed" | "failed";

export interface ProviderCredentialInput {
  /** The backend profile. */
  profile: string;
  /** Where its secrets are. */
  secretRef: SecretRefInput;
}

/** The program that drives a run. */
export interface RanOnView {
  /** Its kind. */
  kind: string;
  /** What is started, with its arguments, where something is. */
  command?: string[];
  /** What the edge found: the program and its version, once the run has begun. */
  found?: string;
}

/** How far a decision reaches. */
export type Reach =
  /** To the one request. */
  | "once"
  /** To the same request, as often as it comes in the run. */
  | "run"
  /** As for the run; and a rule allows this command, path, host or target in the runs of its session. */
  | "session"
  /** As for the run; and a rule allows this command, path, host or target in the workspace, until it is removed. */
  | "project";

/** A run, derived from its log again. */
export interface ReplayView {
  /** The run. */
  runId: string;
  /** How many events were folded: all, unless one of them cannot be. */
  events: number;
  /** The hash of the last of them. */
  head?: string;
  /** The states that it entered, in their order. */
  states: EnteredView[];
  /** How many further ones are not listed. */
  statesLeftOut?: number;
  /** The run as its log says that it is; absent where not even its first event can be read. */
  derived?: RunView;
  /** The SHA-256 of what was derived, the same for every replay of the same log. */
  digest?: string;
  /** The conversation, where the run's backend keeps it in the log. */
  thread?: ThreadView;
  /** What is stored otherwise than the log says. */
  differences: DifferenceView[];
  /** How many further differences are not listed. */
  differencesLeftOut?: number;
  /** Whether nothing differs. */
  same: boolean;
}

export interface ReviewRunInput {
  /** The id of the run to review. */
  run: string;
}

export type ReviewRunOutput = string;

/** What the holder of a token may do. */
export type RoleWord =
  /** Look at everything but tokens. */
  | "viewer"
  /** Look, and have runs and workspaces. */
  | "operator"
  /** Look, and decide what runs ask. */
  | "approver"
  /** Everything. */
  | "admin";

/** A rule of the policy. What is absent is left out. */
export interface RuleView {
  /** Its name. */
  id: string;
  /** What it does. */
  effect: EffectWord;
  /** What it is about. */
  kind: KindWord;
  /** Which of these. */
  match?: string;
  /** For which agent profile. */
  agent?: string;
  /** For which workspace. */
  workspace?: string;
  /** How long it holds. */
  scope: ScopeWord;
  /** For which run. */
  run?: string;
  /** For which session. */
  session?: string;
  /** When it ends. */
  expires?: string;
  /** When it was added; absent where it comes from the configuration. */
  addedAt?: string;
  /** Who added it; absent where it comes from the configuration. */
  addedBy?: WhoView;
}

export interface RunApplyInput {
  /** The id of the run whose changes are applied. It has ended. */
  id: string;
  /** The digest of what was looked at, as the diff shows it. */
  digest: string;
  /**
   * Which part of the changes: files by their id in the diff, each whole or by hunk. Without it all of them, but for the
   * protected ones.
   */
  selection?: SelectedInput[] | null;
  /** The name of a new branch that the changes are committed to; the files of the workspace then stay as they are. */
  branch?: string | null;
  /** Whether the changes are committed too, on the branch that is checked out. */
  commit?: boolean;
}

export interface RunApplyOutput {
  /** The new run. It asks before it changes anything: its approval is to be answered. */
  run: RunView;
}

export interface RunCancelInput {
  /** The run's id. */
  id: string;
  /** Why. */
  reason?: string | null;
}

export interface RunCancelOutput {
  /** The run. */
  run: RunView;
}

export interface RunCommandInput {
  /** The run's id. */
  id: string;
  /** What. */
  kind: Instruction;
  /** What to tell the agent, with a turn or a steer. */
  text?: string | null;
}

export interface RunCommandOutput {
  /** The command. */
  command: CommandView;
  /** Whether its text was redacted: it is executed as stored. */
  redacted: boolean;
}

/** A run that somebody wants. */
export interface RunCreateInput {
  /** What is to be done: a text for the agent, or {action, input} for a run that is a single action. */
  task: TaskInput;
  /** The agent profile. */
  agent: string;
  /** A workspace's id or label, or an absolute path inside an allowed one. */
  workspace: string;
  /** The backend profile, where it is not the agent profile's own. */
  backendProfile?: string | null;
  /** The session whose conversation it goes on with; a new one without. */
  session?: string | null;
  /** What it may do; the agent profile's own without. */
  executionPolicy?: ExecutionPolicyInput | null;
  /** The run that it goes on from, where that is not the last one of the session. */
  continues?: string | null;
}

export interface RunCreateOutput {
  /** The run. */
  run: RunView;
  /** Whether its text was redacted: it is executed as stored. */
  redacted: boolean;
}

export interface RunDiffFileInput {
  /** The run's id. */
  id: string;
  /** The file's id in the diff. */
  file: string;
}

export interface RunDiffFileOutput {
  /** The file. */
  file: FileView;
  /** What changed in it, piece by piece, to choose from. */
  hunks: HunkView[];
  /** The same as a unified diff. */
  patch: string;
  /** How many bytes of it are left out at its end. */
  omitted: number;
}

export interface RunDiffInput {
  /** The run's id. */
  id: string;
  /** Only files after so many: the `next` of the page before. */
  after?: number;
  /** How many at most. */
  limit?: number;
}

export interface RunDiffOutput {
  /** All of it, in short. */
  diff: DiffView;
  /** The files, by path. */
  files: FileView[];
  /** Where the next page begins; absent on the last. */
  next?: number;
}

export interface RunEventsInput {
  /** The run's id. */
  id: string;
  /** Only events after this place: the sequence of the last one that is known. */
  after?: number;
  /** How many at most. */
  limit?: number;
}

export interface RunEventsOutput {
  /** The events, oldest first, exactly as they are stored. */
  events: unknown[];
  /** The place to go on after; absent where there is nothing more yet. */
  next?: number;
}

export interface RunListInput {
  /** Only runs in this state. */
  state?:
    | "created"
    | "planned"
    | "accepted"
    | "preparing"
    | "running"
    | "needs_approval"
    | "applying"
    | "completed"
    | "failed"
    | "cancelled";
  /** Only runs older than this one: the `next` of the page before. */
  before?: string | null;
  /** How many at most. */
  limit?: number;
}

export interface RunListOutput {
  /** The runs, newest first. */
  runs: RunView[];
  /** Where the next page begins; absent on the last. */
  next?: string;
}

export interface RunReplayInput {
  /** The run's id. */
  id: string;
}

export interface RunReplayOutput {
  /** What came of it. */
  replay: ReplayView;
}

/** One run. */
export interface RunShowInput {
  /** The run's id. */
  id: string;
}

export interface RunShowOutput {
  /** The run. */
  run: RunView;
}

export interface RunUndoInput {
  /** The id of the run that applied changes. */
  id: string;
}

export interface RunUndoOutput {
  /** The new run. It asks before it changes anything: its approval is to be answered. */
  run: RunView;
}

/** A run. What is absent is left out. */
export interface RunView {
  /** Its id. */
  id: string;
  /** Where it stands. */
  state:
    | "created"
    | "planned"
    | "accepted"
    | "preparing"
    | "running"
    | "needs_approval"
    | "applying"
    | "completed"
    | "failed"
    | "cancelled";
  /** The place of its last event. */
  lastSequence: number;
  /** When that was recorded. */
  lastEventAt: string;
  /** The agent profile. */
  agentId: string;
  /** The backend profile. */
  backendProfile: string;
  /** The program that drives it, as it is configured, and the version that ran; not in lists. */
  backend?: RanOnView;
  /** The conversation. */
  sessionId: string;
  /** Where it works. */
  workspace: WorkspaceView;
  /** The edge that executes it, once it is planned. */
  edgeId?: string;
  /** The run that it goes on from. */
  parentRunId?: string;
  /** What cannot be relied on. */
  degraded?: DegradedView;
  /** Why it failed or was cancelled. */
  code?: string;
  /** What kind of failure it was, where a backend failed. */
  failureKind?: string;
  /** The code of what our own agent loop failed with, where it did. */
  cause?: string;
  /** What to do first. */
  recovery?: string;
  /** What happened, or why somebody ended it or is ending it. */
  message?: string;
  /** What is to be done. */
  task: TaskView;
  /** Whether redaction changed the task: it is executed as it stands here. */
  taskRedacted?: boolean;
  /** When it was made. */
  createdAt: string;
  /** The approvals that it waits for. */
  openApprovals?: string[];
  /** Until when it waits for a further turn, where it is kept open and nothing else is left to do. */
  keptOpenUntil?: string;
  /** What the agent said last; not in lists. */
  response?: string;
  /** What it may use at most, where that is limited. */
  budget?: unknown;
  /** Time, tokens and cost so far. */
  metrics: MetricsView;
}

export type SandboxInput = "read-only" | "workspace-write" | "none";

/** How long a rule holds. */
export type ScopeWord =
  /** For one request. */
  | "once"
  /** As long as its run. */
  | "run"
  /** In the runs of its session. */
  | "session"
  /** In its workspace. */
  | "project"
  /** Until it is removed or expires. */
  | "always";

export interface SecretRefInput {
  /** The name. */
  name: string;
  /** Which of its keys; all that the profile needs without. */
  keys?: string[];
}

export interface SecretScopeInput {
  /** Of which backend profile, and where they are. Names only, never a value. */
  providerCredentials?: ProviderCredentialInput[];
}

/** A file that is chosen. */
export interface SelectedInput {
  /** The file's id in the diff. */
  file: string;
  /** The hunks: 1, 2, 3, …; without them the whole file. */
  hunks?: number[] | null;
}

export interface SessionCloseInput {
  /** The session's id. */
  id: string;
}

export interface SessionCloseOutput {
  /** The session. */
  session: string;
}

export interface SessionListInput {
  /** Only sessions whose latest run is older than this one: the `next` of the page before. */
  before?: string | null;
  /** How many at most. */
  limit?: number;
}

export interface SessionListOutput {
  /** The sessions of the latest runs, the latest first. */
  sessions: SessionView[];
  /** Where the next page begins; absent on the last. */
  next?: string;
}

/** A conversation that runs share, as its latest run shows it. */
export interface SessionView {
  /** Its id. */
  id: string;
  /** The agent profile of its latest run. */
  agentId: string;
  /** Where that run works. */
  workspace: WorkspaceView;
  /** How many of the latest runs are in it. */
  runs: number;
  /** Its latest run. */
  lastRunId: string;
  /** Where that run stands. */
  state:
    | "created"
    | "planned"
    | "accepted"
    | "preparing"
    | "running"
    | "needs_approval"
    | "applying"
    | "completed"
    | "failed"
    | "cancelled";
  /** When something last happened in any of them. */
  lastEventAt: string;
}

export interface SummariseFailuresInput {
  /** Only runs that failed at this time or later, as in 2026-07-28T09:00:00Z. */
  since?: string | null;
  /** How many at most, the newest first. */
  limit?: number;
}

export type SummariseFailuresOutput = string;

/** What is to be done: a text for an agent, or one action. */
export type TaskInput =
  /** A text for an agent. */
  | string
  /** One action with its input. */
  | ActionTask;

/** What is to be done: a text for an agent, or one action. */
export type TaskView =
  /** A text for an agent. */
  | string
  /** One action. */
  | {
      /** The action's name. */
      action: string;
      /** Its input; not in lists. */
      input?: unknown;
    };

/** A conversation, as the logs of its runs say it went. */
export interface ThreadView {
  /** How many messages it has. */
  messages: number;
  /** How many of them were there before this run. */
  messagesBefore: number;
  /** How many runs had part in it before this one. */
  runsBefore: number;
  /** How many calls of tools it has. */
  calls: number;
  /** How many calls of this run have no result. */
  callsOpen: number;
  /** The SHA-256 of the messages and of the agent's state. */
  digest: string;
}

export interface TokenCreateInput {
  /** Whose it is, or what for: the name that its holder acts under. */
  name: string;
  /**
   * What its holder may do: all of them look; an operator has runs, an approver decides what they ask, an admin does
   * everything.
   */
  role: RoleWord;
  /** When it stops to let anybody in (RFC 3339); never without it. */
  expires?: string | null;
}

export interface TokenCreateOutput {
  /** The token. */
  token: TokenView;
  /** Its text, shown here and never again. */
  text: string;
}

export type TokenListInput = Record<string, never>;

export interface TokenListOutput {
  /** The tokens, oldest first, expired ones among them. */
  tokens: TokenView[];
}

export interface TokenRevokeInput {
  /** The token's id or name. */
  id: string;
}

export interface TokenRevokeOutput {
  /** Whether its holder is kept out from now on. */
  revoked: boolean;
}

/** A token. Its text is not kept. */
export interface TokenView {
  /** Its id. */
  id: string;
  /** The name that its holder acts under. */
  name: string;
  /** What its holder may do. */
  role: RoleWord;
  /** When it was made. */
  createdAt: string;
  /** Who had it made. */
  createdBy: WhoView;
  /** When it stops to let anybody in. */
  expiresAt?: string;
}

export type VersionShowInput = Record<string, never>;

export interface VersionShowOutput {
  /** The product. */
  name: string;
  /** Its version. */
  version: string;
}

export interface ViewportInput {
  /** In pixels. */
  width: number;
  /** In pixels. */
  height: number;
}

/** Who did something. */
export interface WhoView {
  /** The actor's name. */
  id: string;
  /** person, service or agent. */
  kind: string;
  /** The run that an agent drives. */
  runId?: string;
}

export interface WorkspaceAddInput {
  /** The directory, as an absolute path on the edge. */
  path: string;
  /** Its name for people; the directory's own without. */
  label?: string | null;
}

export interface WorkspaceAddOutput {
  /** The workspace. */
  workspace: WorkspaceEntry;
}

/** A workspace. Its root is known to its edge alone. */
export interface WorkspaceEntry {
  /** Its id. */
  id: string;
  /** Its name for people. */
  label: string;
  /** The project that it belongs to. */
  project: string;
  /** The edge that has it. */
  edgeId: string;
}

export type WorkspaceListInput = Record<string, never>;

export interface WorkspaceListOutput {
  /** The workspaces, by label. */
  workspaces: WorkspaceEntry[];
}

export interface WorkspaceRemoveInput {
  /** The workspace's id or label. */
  id: string;
}

export interface WorkspaceRemoveOutput {
  /** The workspace. */
  workspace: WorkspaceEntry;
}

/** The directory that a run works on. */
export interface WorkspaceView {
  /** Its id. */
  id: string;
  /** Its name for people. */
  label: string;
}
