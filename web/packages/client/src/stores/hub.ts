// The connection to the hub as a whole: who is logged in, and what is worth reading again.

import type { Environment } from "../environment.js";
import { isRecord } from "../envelope.js";
import type { Who } from "../generated/events.js";
import { RUN_STATES, type RunState } from "../generated/lifecycle.js";
import { readJson } from "../json.js";
import { EventStream } from "../stream.js";
import type { Transport } from "../transport.js";
import type { Link } from "../view.js";
import type { Followed } from "./keeper.js";
import { SharedStore } from "./shared.js";

/** Where there is no stream, everything is read again this often; in a hidden page seldom. */
export const POLL_MS = 5_000;
export const HIDDEN_POLL_MS = 30_000;

/** The code of a caller whom the hub does not know. */
export const AUTHENTICATION_ERROR = "AUTHENTICATION_ERROR";

/** What is known of the hub. */
export interface HubSnapshot {
  link: Link;
  /** Who is logged in; null before it is known, and for a token. */
  actor: Who | null;
  /** What they may do; "*" is everything. */
  permissions: readonly string[];
  name: string | null;
  version: string | null;
  /** How many approvals are open, as far as the hub said. */
  openApprovals: number | null;
}

/** A run that has changed. */
export interface ChangedRun {
  id: string;
  state: RunState;
  lastSequence: number;
}

/** What is worth reading again. */
export interface Change {
  /** Whether anything may have changed. */
  all: boolean;
  /** Whether more changed than how far runs got: the state of one, or how many approvals are open. */
  states: boolean;
  runs: readonly ChangedRun[];
  approvals: number | null;
}

/** Anything may have changed. */
const ALL: Change = { all: true, states: true, runs: [], approvals: null };
/** So many runs' states are remembered; a run that is not counts as new. */
const STATES_MAX = 2_000;

/** The hub. */
export class HubStore extends SharedStore<HubSnapshot> {
  readonly #changed = new Set<(change: Change) => void>();
  readonly #stream: EventStream;
  readonly #states = new Map<string, RunState>();
  #polling = false;
  #cancelPoll: () => void = () => undefined;
  #unsee: () => void = () => undefined;
  #asking: AbortController | null = null;

  constructor(
    environment: Environment,
    private readonly transport: Transport,
    private readonly hasSession: boolean,
  ) {
    super(environment, {
      link: { kind: "connecting" },
      actor: null,
      permissions: hasSession ? [] : ["*"],
      name: null,
      version: null,
      openApprovals: null,
    });
    this.#stream = new EventStream(transport, environment, {
      path: "/api/v1/stream",
      lastId: () => null,
      onMessage: ({ event, data }) => event === "changed" && this.#hear(data),
      onLink: (link) => this.#relink(link),
      isOver: () => false,
      lastAt: () => null,
    });
  }

  /** Calls when something is worth reading again; gives what ends it. The hub is watched meanwhile. */
  onChange(run: (change: Change) => void): () => void {
    this.#changed.add(run);
    const unsubscribe = this.subscribe(() => undefined);
    return () => {
      this.#changed.delete(run);
      unsubscribe();
    };
  }

  /** What is to follow a read that failed: a hub that is away says itself, when it is back, that all is to be read again. */
  get afterFailure(): Followed {
    return this.get().link.kind === "live" ? "again" : "rest";
  }

  /** Begins anew, as after a login. */
  readonly retry = (): void => {
    if (!this.isStarted) return this.set({ ...this.get(), link: { kind: "connecting" } });
    this.stop();
    this.start();
  };

  /** Says that the hub does not know the caller any more. */
  unauthorized(): void {
    const message = "You are not logged in.";
    this.#cancelPoll();
    this.#stream.stop();
    this.set({ ...this.get(), actor: null, permissions: [], link: { kind: "refused", code: AUTHENTICATION_ERROR, message } });
  }

  protected start(): void {
    this.#polling = false;
    this.#stream.start();
    this.#unsee = this.environment.onVisibility(() => this.#schedule());
    this.#schedule();
    if (this.hasSession) void this.#readSession();
  }

  protected stop(): void {
    this.#stream.stop();
    this.#cancelPoll();
    this.#unsee();
    this.#asking?.abort();
  }

  async #readSession(): Promise<void> {
    const asking = new AbortController();
    this.#asking = asking;
    const answer = await this.transport.ask("/api/v1/session", { signal: asking.signal }, { again: true });
    if (asking.signal.aborted || !answer.ok || !isRecord(answer.data)) return;
    const { actor, permissions, name, version } = answer.data;
    this.set({
      ...this.get(),
      actor: isWho(actor) ? actor : null,
      permissions: Array.isArray(permissions) ? permissions.map(String) : ["*"],
      name: typeof name === "string" ? name : null,
      version: typeof version === "string" ? version : null,
    });
  }

  #relink(link: Link): void {
    if (link.kind === "refused" && link.code !== AUTHENTICATION_ERROR && link.code !== "PERMISSION_DENIED") {
      // An application without runs has no such stream, nor has an older hub.
      this.#polling = true;
      this.#schedule();
      return this.set({ ...this.get(), link: { kind: "live" } });
    }
    this.set({ ...this.get(), link });
    // What changed while nobody listened was not heard.
    if (link.kind === "live") this.#tell(ALL);
  }

  #hear(data: string): void {
    const change = readChange(data);
    if (change === null) return;
    const { runs, approvals } = change;
    const counted = approvals !== null && approvals !== this.get().openApprovals;
    const entered = runs.filter(({ id, state }) => this.#states.get(id) !== state);
    if (this.#states.size > STATES_MAX) this.#states.clear();
    for (const { id, state } of runs) this.#states.set(id, state);
    if (counted) this.set({ ...this.get(), openApprovals: approvals });
    this.#tell({ all: false, states: counted || entered.length > 0, runs, approvals });
  }

  #tell(change: Change): void {
    for (const run of this.#changed) run(change);
  }

  /** A hidden page has no stream after a while, so it asks now and then; so does one whose hub has none. */
  #schedule(): void {
    this.#cancelPoll();
    const hidden = this.environment.hidden();
    if (this.get().link.kind === "refused" || (!hidden && !this.#polling)) return;
    this.#cancelPoll = this.environment.after(hidden ? HIDDEN_POLL_MS : POLL_MS, () => {
      this.#tell(ALL);
      this.#schedule();
    });
  }
}

function readChange(data: string): Pick<Change, "runs" | "approvals"> | null {
  try {
    const read = readJson(data);
    if (!isRecord(read)) return null;
    const runs = Array.isArray(read["runs"]) ? read["runs"].filter(isChangedRun) : [];
    return { runs, approvals: typeof read["approvals"] === "number" ? read["approvals"] : null };
  } catch {
    return null;
  }
}

function isChangedRun(value: unknown): value is ChangedRun {
  if (!isRecord(value)) return false;
  return typeof value["id"] === "string" && isState(value["state"]) && typeof value["lastSequence"] === "number";
}

/** Whether a word is a state of a run. */
export function isState(value: unknown): value is RunState {
  return RUN_STATES.some((state) => state === value);
}

function isWho(value: unknown): value is Who {
  return isRecord(value) && typeof value["id"] === "string" && typeof value["kind"] === "string";
}
