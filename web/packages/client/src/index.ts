// Runyard from TypeScript. This is all that others may use.

export { Client, ClientError, createClient } from "./client.js";
export type { ActionManifest, ActionTypes, AnyActions, ClientOptions, InputOf, Manifest, NameOf, OutputOf } from "./client.js";
export { ownEnvironment } from "./environment.js";
export type { Environment } from "./environment.js";
export { refusal } from "./envelope.js";
export type { Around, Envelope, Failing, Issue, LogLine, Meta } from "./envelope.js";
export type { ProducedArtifact, Progress, Refusal, Success } from "./envelope.js";
export { foldRun, RunFold } from "./fold/fold.js";
export { RunReader } from "./fold/reader.js";
export { isQuiet } from "./fold/content.js";
export { isKnown } from "./fold/known.js";
export { timeUntil } from "./fold/time.js";
export type { KnownEvent } from "./fold/known.js";
export { isExact, readJson } from "./json.js";
export type { RawNumber } from "./json.js";
export { SseParser } from "./sse.js";
export type { SseMessage } from "./sse.js";
export type { ApprovalsSnapshot, ApprovalsStore, OpenApproval } from "./stores/approvals.js";
export type { DataSnapshot, DataStore } from "./stores/data.js";
export type { ChangedRun, HubSnapshot, HubStore } from "./stores/hub.js";
export type { RunStore } from "./stores/run.js";
export type { RunFilter, RunsSnapshot, RunsStore, RunSummary } from "./stores/runs.js";
export type { Store } from "./stores/shared.js";
export { CANCELLED, CONNECTION_FAILED, storedPageKey } from "./transport.js";
export type { Auth, CallOptions, FollowOptions } from "./transport.js";
export type * from "./view.js";
export type { RunEvent } from "./view.js";

export { ERRORS, RECOVERY } from "./generated/errors.js";
export type { Code, ErrorClass, Retry } from "./generated/errors.js";
export { EVENT_TYPES } from "./generated/events.js";
export { RUN_STATES, TERMINAL_STATES, TRANSITIONS } from "./generated/lifecycle.js";
export type { RunState } from "./generated/lifecycle.js";
export type { HubActions } from "./generated/actions.js";
/** What actions take and give, by the names of their schemas. */
export type * as actions from "./generated/actions.js";
/** What events say. */
export type * from "./generated/events.js";
