// The client: calls, and one store for everything that is looked at.

import { ownEnvironment, type Environment } from "./environment.js";
import { isRecord, refusal, type Envelope } from "./envelope.js";
import type { HubActions } from "./generated/actions.js";
import { ApprovalsStore } from "./stores/approvals.js";
import { DataStore } from "./stores/data.js";
import { HubStore } from "./stores/hub.js";
import { RunStore } from "./stores/run.js";
import { RunsStore, type RunFilter } from "./stores/runs.js";
import { Shelf } from "./stores/shared.js";
import { storePageKey, Transport, type Auth, type CallOptions, type FollowOptions } from "./transport.js";

/** Actions by name, each with what it takes and what it gives. */
export type ActionTypes<Actions> = { [Name in keyof Actions]: { input: unknown; output: unknown } };
/** Actions that are known only when the program runs. */
export type AnyActions = Record<string, { input: unknown; output: unknown }>;
/** The name of an action. */
export type NameOf<Actions> = keyof Actions & string;
/** What an action takes. */
export type InputOf<Actions extends ActionTypes<Actions>, Name extends NameOf<Actions>> = Actions[Name]["input"];
/** What an action gives. */
export type OutputOf<Actions extends ActionTypes<Actions>, Name extends NameOf<Actions>> = Actions[Name]["output"];

/** An action as the hub describes it. */
export interface ActionManifest {
  name: string;
  version: string;
  title: string;
  description: string;
  inputSchema: unknown;
  outputSchema: unknown;
  sideEffects: "read" | "write" | "destructive";
  requiresConfirmation: boolean;
  peopleOnly: boolean;
  permissions: string[];
  supportedSurfaces: string[];
  timeoutMs: number | null;
  examples: unknown[];
  http?: string;
  [more: string]: unknown;
}

/** All actions that can be called. */
export interface Manifest {
  actions: ActionManifest[];
}

/** Why something that gives no envelope failed. */
export class ClientError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ClientError";
  }
}

/** Where the hub is and who asks. */
export interface ClientOptions {
  /** In front of every path; the page's own origin without it. */
  baseUrl?: string;
  /** The browser's session without it. */
  auth?: Auth;
  fetch?: typeof fetch;
  /** Where calls come from: "react", or "dev" for a developer's page. */
  surface?: "react" | "dev";
  /** The clock and the window, for tests. */
  environment?: Environment;
}

/** So many runs, lists and answers are kept after the last look at them. */
const RUNS_KEPT_MAX = 3;
const ANSWERS_KEPT_MAX = 64;

/** A hub, or an application with actions, from TypeScript. */
export class Client<Actions extends ActionTypes<Actions> = HubActions> {
  readonly #environment: Environment;
  readonly #transport: Transport;
  readonly #hub: HubStore;
  readonly #runs = new Shelf<RunStore>(RUNS_KEPT_MAX);
  readonly #lists = new Shelf<RunsStore>(RUNS_KEPT_MAX);
  readonly #answers = new Shelf<DataStore<unknown>>(ANSWERS_KEPT_MAX);
  readonly #approvals: ApprovalsStore;
  readonly #manifest: DataStore<Manifest>;

  constructor(options: ClientOptions = {}) {
    const auth = options.auth ?? { kind: "session" };
    this.#environment = options.environment ?? ownEnvironment();
    this.#transport = new Transport({
      baseUrl: (options.baseUrl ?? "").replace(/\/$/, ""),
      auth,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      surface: options.surface ?? "react",
      onUnauthorized: () => this.#hub.unauthorized(),
    });
    this.#hub = new HubStore(this.#environment, this.#transport, auth.kind === "session");
    this.#approvals = new ApprovalsStore(this.#environment, this.#transport, this.#hub);
    this.#manifest = new DataStore(this.#environment, (signal) => this.#readManifest(signal));
  }

  /** Calls an action. It never throws: what cannot be reached is a failure with the code CONNECTION_FAILED. */
  async call<Name extends NameOf<Actions>>(
    name: Name,
    input: InputOf<Actions, Name>,
    options: CallOptions = {},
  ): Promise<Envelope<OutputOf<Actions, Name>>> {
    return trusted(await this.#transport.call(name, input, options));
  }

  /** Calls an action and tells what it says meanwhile. It never throws. */
  async follow<Name extends NameOf<Actions>>(
    name: Name,
    input: InputOf<Actions, Name>,
    options: FollowOptions = {},
  ): Promise<Envelope<OutputOf<Actions, Name>>> {
    return trusted(await this.#transport.follow(name, input, options));
  }

  /** A run: one store for everybody, which reads while somebody looks. */
  run(id: string): RunStore {
    return this.#runs.take(id, () => new RunStore(this.#environment, this.#transport, id));
  }

  /** The runs that match. */
  runs(filter: RunFilter = {}): RunsStore {
    return this.#lists.take(keyOf(filter), () => new RunsStore(this.#environment, this.#transport, this.#hub, filter));
  }

  /** What waits for a person. */
  approvals(): ApprovalsStore {
    return this.#approvals;
  }

  /** The answer of an action that only reads. */
  data<Name extends NameOf<Actions>>(name: Name, input: InputOf<Actions, Name>): DataStore<OutputOf<Actions, Name>> {
    const ask = (signal: AbortSignal) => this.#transport.call(name, input, { signal });
    return this.#answers.take(`${name} ${keyOf(input)}`, () => new DataStore(this.#environment, ask));
  }

  /** What can be called. */
  actions(): DataStore<Manifest> {
    return this.#manifest;
  }

  /** The connection to the hub, and who is logged in. */
  hub(): HubStore {
    return this.#hub;
  }

  /** What an artifact holds; throws a ClientError where it cannot be had. */
  async download(runId: string, artifactId: string, options: { signal?: AbortSignal } = {}): Promise<Blob> {
    const path = `/api/v1/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(artifactId)}/content`;
    const meta = { action: null, surface: this.#transport.surface };
    const response = await this.#transport.send(path, options).catch((error: unknown) => {
      const { error: failed } = refusal("CONNECTION_FAILED", "", meta);
      throw new ClientError(failed.code, error instanceof Error ? error.message : String(error));
    });
    if (response.ok) return response.blob();
    const envelope = await this.#transport.readEnvelope(response, meta);
    if (envelope.ok) throw new ClientError("CONNECTION_FAILED", "The answer is no file.");
    throw new ClientError(envelope.error.code, envelope.error.message);
  }

  /** Begins a session with the code of a link, which counts once. */
  async logIn(code: string): Promise<Envelope<{ pageKey: string }>> {
    const headers = { "content-type": "application/json" };
    const answer = await this.#transport.ask("/login", { method: "POST", headers, body: JSON.stringify({ code }) });
    const pageKey = answer.ok && isRecord(answer.data) ? answer.data["pageKey"] : null;
    if (typeof pageKey === "string") {
      storePageKey(pageKey);
      this.reconnect();
    }
    return trusted(answer);
  }

  /** Ends the session. */
  async logOut(): Promise<void> {
    await this.#transport.ask("/logout", { method: "POST" });
    storePageKey(null);
    this.#hub.unauthorized();
  }

  /** Asks again for all that somebody looks at, as after something was done. */
  refresh(): void {
    const looked = [...this.#lists.all(), ...this.#answers.all(), this.#approvals].filter((store) => store.isWatched);
    for (const store of looked) void store.refresh();
  }

  /** Begins anew with all connections, as after a login. */
  reconnect(): void {
    this.#hub.retry();
    for (const run of this.#runs.all()) run.retry();
    if (this.#manifest.isWatched) void this.#manifest.refresh();
    this.refresh();
  }

  async #readManifest(signal: AbortSignal): Promise<Envelope<Manifest>> {
    return trusted(await this.#transport.ask(this.#transport.actionsPath, { signal }, { again: true }));
  }
}

/** A client of a hub, or with its own types of an application's actions. */
export function createClient<Actions extends ActionTypes<Actions> = HubActions>(options: ClientOptions = {}): Client<Actions> {
  return new Client<Actions>(options);
}

/** The server answers by the schema that the types were made from, and checks what it gives by it. */
function trusted<T>(envelope: Envelope<unknown>): Envelope<T> {
  return envelope as Envelope<T>;
}

/** The same text for the same value, in whatever order its fields were written. */
function keyOf(value: unknown): string {
  const sorted = (_: string, one: unknown) =>
    isRecord(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one;
  return JSON.stringify(value, sorted) ?? "";
}
