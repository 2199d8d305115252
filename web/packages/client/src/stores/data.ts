// The answer of something that only reads, kept while somebody looks at it.

import type { Environment } from "../environment.js";
import type { Envelope, Failing } from "../envelope.js";
import type { HubActions } from "../generated/actions.js";
import { CANCELLED } from "../transport.js";
import type { Change, HubStore } from "./hub.js";
import { Keeper, type Followed } from "./keeper.js";
import { SharedStore } from "./shared.js";

/** An answer that is no older is not asked for again when somebody looks, nor when its hub says that something changed. */
const FRESH_MS_MAX = 2_000;
/** What a hub says to nobody, such as what was done on the command line, is asked for this often. */
export const UNTOLD_MS = 15_000;

/** What an answer changes with: all that runs do, their states and what is decided, or nothing that is told. */
type ChangesWith = "events" | "states" | "untold";

/** The answers that change while somebody looks. Those of a run's own page are not here: its events say when to ask. */
const CHANGING: ReadonlyMap<string, ChangesWith> = new Map<keyof HubActions, ChangesWith>([
  ["session_list", "events"],
  ["edge_list", "states"],
  ["policy_show", "states"],
  ["workspace_list", "untold"],
  ["agent_list", "untold"],
  ["backend_list", "untold"],
]);

/** An answer, as far as it is there. What was there before stays until there is a newer one. */
export interface DataSnapshot<T> {
  data: T | undefined;
  error: Failing | null;
  loading: boolean;
}

/** The answer of one question. */
export class DataStore<T> extends SharedStore<DataSnapshot<T>> {
  readonly #keeper: Keeper;
  #loadedMs: number | null = null;
  #asking: { abort: AbortController; answered: Promise<void> } | null = null;
  /** How many wait for an answer without looking. */
  #waiting = 0;
  #followed: { hub: HubStore; changesWith: ChangesWith } | null = null;
  #unfollow: () => void = () => undefined;

  constructor(
    environment: Environment,
    private readonly ask: (signal: AbortSignal) => Promise<Envelope<T>>,
  ) {
    super(environment, { data: undefined, error: null, loading: true });
    this.#keeper = new Keeper(environment, () => this.#askAgain(), FRESH_MS_MAX);
  }

  /** Asks again, also where an answer is on its way: it may be older than what made somebody ask. */
  readonly refresh = (): Promise<void> => {
    this.set({ ...this.get(), loading: true });
    return this.#begin();
  };

  /** What is there, or else what comes. */
  readonly load = async (): Promise<DataSnapshot<T>> => {
    this.#waiting += 1;
    if (this.get().data === undefined) await (this.#asking?.answered ?? this.refresh());
    this.#waiting -= 1;
    return this.get();
  };

  /** Is asked again while somebody looks, when the hub says what changes the answer of the action with this name. */
  follow(name: string, hub: HubStore): this {
    const changesWith = CHANGING.get(name);
    if (this.#followed !== null || changesWith === undefined) return this;
    this.#followed = { hub, changesWith };
    if (this.isStarted) this.#listen();
    return this;
  }

  protected start(): void {
    const fresh = this.#loadedMs !== null && this.environment.now() - this.#loadedMs <= FRESH_MS_MAX;
    if (!fresh && this.#asking === null) {
      this.set({ ...this.get(), loading: true });
      this.#keeper.want();
    }
    this.#listen();
  }

  protected stop(): void {
    this.#unfollow();
    this.#keeper.stop();
    if (this.#waiting > 0) return;
    this.#asking?.abort.abort();
    this.#asking = null;
  }

  #listen(): void {
    if (this.#followed === null) return;
    const { hub, changesWith } = this.#followed;
    const unwatch = hub.onChange((change) => isNews(change, changesWith) && this.#keeper.want());
    let cancel: () => void = () => undefined;
    const wait = () => {
      cancel = this.environment.after(UNTOLD_MS, () => {
        // A hub that is away, and one that nobody looks at, says itself when it is time.
        if (hub.get().link.kind === "live" && !this.environment.hidden()) this.#keeper.want();
        wait();
      });
    };
    wait();
    this.#unfollow = () => {
      unwatch();
      cancel();
    };
  }

  async #askAgain(): Promise<Followed> {
    await this.#begin();
    return "rest";
  }

  #begin(): Promise<void> {
    this.#asking?.abort.abort();
    const abort = new AbortController();
    const answered = this.#ask(abort);
    this.#asking = { abort, answered };
    return answered;
  }

  async #ask(abort: AbortController): Promise<void> {
    const answer = await this.ask(abort.signal);
    if (this.#asking?.abort !== abort) return this.#asking?.answered;
    this.#asking = null;
    const before = this.get();
    if (!answer.ok) return this.set({ ...before, error: answer.error.code === CANCELLED ? null : answer.error, loading: false });
    this.#loadedMs = this.environment.now();
    // What did not change stays the same object, and nobody is told.
    const same = before.data !== undefined && JSON.stringify(before.data) === JSON.stringify(answer.data);
    if (!same || before.loading || before.error !== null) {
      this.set({ data: same ? before.data : answer.data, error: null, loading: false });
    }
  }
}

function isNews({ all, states, runs }: Change, changesWith: ChangesWith): boolean {
  if (changesWith === "untold") return all;
  return states || (changesWith === "events" && runs.length > 0);
}
