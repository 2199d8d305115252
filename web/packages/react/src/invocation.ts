// One action as a page uses it: it asks before it does anything that needs asking, and does one thing at a time.

import {
  CANCELLED,
  CONNECTION_FAILED,
  refusal,
  type ActionManifest,
  type CallOptions,
  type DataStore,
  type Envelope,
  type Failing,
  type FollowOptions,
  type LogLine,
  type Manifest,
  type ProducedArtifact,
  type Progress,
  type Refusal,
} from "@runyard/client";

/** So many lines are kept of what an action says. */
const LOG_LINES_MAX = 1_000;

/** What is to be confirmed. */
export interface ConfirmRequest {
  action: ActionManifest;
  input: unknown;
}

/** Asks a person; only true is a yes. */
export type Confirm = (request: ConfirmRequest) => Promise<boolean>;

/** How an action is to be called. There is no way to confirm beforehand. */
export type InvokeOptions = Omit<CallOptions, "confirm" | "signal">;

/** Where a call stands. */
export interface InvocationState<Input, Output> {
  status: "idle" | "confirming" | "running" | "ok" | "error";
  /** The input that waits for confirmation. */
  pending: Input | undefined;
  data: Output | undefined;
  error: Failing | null;
  envelope: Envelope<Output> | null;
  progress: Progress | null;
  logs: readonly LogLine[];
  artifacts: readonly ProducedArtifact[];
}

/** What a page can do with an action. */
export interface InvocationControls<Input, Output> {
  /** Calls it, or asks first. Gives what came of it; while one call is under way another is refused. */
  invoke(input: Input, options?: InvokeOptions): Promise<Envelope<Output>>;
  /** A person's yes to what waits. */
  confirm(): void;
  /** Drops what waits, or what came of the last call. */
  dismiss(): void;
  /** Ends the call that is under way. */
  cancel(): void;
}

/** The parts of a client that calls need. */
export interface Caller {
  actions(): Pick<DataStore<Manifest>, "get" | "load" | "refresh">;
  follow(name: string, input: unknown, options: FollowOptions): Promise<Envelope<unknown>>;
  refresh(): void;
}

interface Waiting<Input, Output> {
  input: Input;
  options: InvokeOptions;
  manifest: ActionManifest | null;
  abort: AbortController;
  done: (envelope: Envelope<Output>) => void;
}

/** One action on one page. */
export class Invocation<Input, Output> implements InvocationControls<Input, Output> {
  readonly #listeners = new Set<() => void>();
  #state: InvocationState<Input, Output> = begun("idle");
  #current: Waiting<Input, Output> | null = null;

  constructor(
    private readonly client: Caller,
    readonly name: string,
    /** Asks instead of the page, where the application wants it so. */
    public ask: Confirm | null = null,
    private readonly outlives = false,
  ) {}

  /** Where it stands. */
  readonly get = (): InvocationState<Input, Output> => this.#state;

  /** Calls on every change; gives what ends it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  };

  readonly invoke = async (input: Input, options: InvokeOptions = {}): Promise<Envelope<Output>> => {
    if (this.#current !== null) return this.#refused("CONCURRENCY_LIMIT", "This call is under way already.");
    return new Promise((done) => {
      const current = { input, options, manifest: null, abort: new AbortController(), done };
      this.#current = current;
      this.#set(begun("running"));
      void this.#prepare(current);
    });
  };

  readonly confirm = (): void => {
    if (this.#current !== null && this.#state.status === "confirming") void this.#send(this.#current, true);
  };

  readonly dismiss = (): void => {
    const current = this.#current;
    if (this.#state.status === "running") return;
    this.#current = null;
    this.#set(begun("idle"));
    current?.done(this.#refused(CANCELLED, "Nobody confirmed it, and nothing was sent."));
  };

  readonly cancel = (): void => {
    if (this.#state.status === "confirming") return this.dismiss();
    this.#current?.abort.abort();
  };

  /** Nobody looks any more: what waits is dropped, and what is under way is ended, unless it is to outlive its component. */
  leave(): void {
    if (this.#state.status === "confirming") this.dismiss();
    else if (!this.outlives) this.cancel();
  }

  async #prepare(current: Waiting<Input, Output>): Promise<void> {
    const found = await findAction(this.client, this.name, current.abort.signal);
    if (!found.ok) return this.#finish(current, found.refusal);
    const { manifest } = found;
    current.manifest = manifest;
    // What destroys something has it too, unless whoever defined the action says otherwise.
    if (manifest?.requiresConfirmation !== true) return this.#send(current, false);
    this.#set({ ...begun("confirming"), pending: current.input });
    if (this.ask === null) return;
    const yes = await this.ask({ action: manifest, input: current.input }).catch(() => false);
    if (this.#current !== current || this.#state.status !== "confirming") return;
    if (yes === true) this.confirm();
    else this.dismiss();
  }

  async #send(current: Waiting<Input, Output>, confirmed: boolean): Promise<void> {
    this.#set(begun("running"));
    const envelope = await this.client.follow(this.name, current.input, {
      ...current.options,
      ...(confirmed ? { confirm: true } : {}),
      signal: current.abort.signal,
      onLog: (line) => this.#set({ ...this.#state, logs: [...this.#state.logs, line].slice(-LOG_LINES_MAX) }),
      onProgress: (progress) => this.#set({ ...this.#state, progress }),
      onArtifact: (artifact) => this.#set({ ...this.#state, artifacts: [...this.#state.artifacts, artifact] }),
    });
    this.#finish(current, envelope as Envelope<Output>);
    if (current.manifest?.sideEffects !== "read") this.client.refresh();
  }

  #finish(current: Waiting<Input, Output>, envelope: Envelope<Output>): void {
    this.#current = null;
    const { artifacts, logs } = envelope;
    const { progress } = this.#state;
    if (envelope.ok) this.#set({ ...begun("ok"), data: envelope.data, envelope, artifacts, logs, progress });
    else this.#set({ ...begun("error"), error: envelope.error, envelope, artifacts, logs, progress });
    current.done(envelope);
  }

  #refused(code: string, message: string): Envelope<Output> {
    return refusal(code, message, { action: this.name });
  }

  #set(state: InvocationState<Input, Output>): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function begun<Input, Output>(status: InvocationState<Input, Output>["status"]): InvocationState<Input, Output> {
  return { status, pending: undefined, data: undefined, error: null, envelope: null, progress: null, logs: [], artifacts: [] };
}

type Found = { ok: true; manifest: ActionManifest | null } | { ok: false; refusal: Refusal };

/** What the hub says of an action; null where it knows none, and then it says so itself. */
async function findAction(client: Caller, name: string, signal: AbortSignal): Promise<Found> {
  const store = client.actions();
  const find = () => store.get().data?.actions.find((action) => action.name === name);
  const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  await Promise.race([store.load(), ended]);
  // An application may have been started anew with further actions.
  if (find() === undefined && store.get().data !== undefined) await Promise.race([store.refresh(), ended]);
  const { data, error } = store.get();
  if (signal.aborted) return { ok: false, refusal: refusal(CANCELLED, "Action was cancelled.", { action: name }) };
  if (data !== undefined) return { ok: true, manifest: find() ?? null };
  const failed = error ?? { code: CONNECTION_FAILED, message: "The actions could not be read." };
  return { ok: false, refusal: refusal(failed.code, failed.message, { action: name }, failed) };
}
