// The answer of something that only reads, kept while somebody looks at it.

import type { Environment } from "../environment.js";
import type { Envelope, Failing } from "../envelope.js";
import { CANCELLED } from "../transport.js";
import { SharedStore } from "./shared.js";

/** An answer that is no older is not asked for again when somebody looks. */
const FRESH_MS_MAX = 2_000;

/** An answer, as far as it is there. What was there before stays until there is a newer one. */
export interface DataSnapshot<T> {
  data: T | undefined;
  error: Failing | null;
  loading: boolean;
}

/** The answer of one question. */
export class DataStore<T> extends SharedStore<DataSnapshot<T>> {
  #loadedMs: number | null = null;
  #asking: { abort: AbortController; answered: Promise<void> } | null = null;
  /** How many wait for an answer without looking. */
  #waiting = 0;

  constructor(
    environment: Environment,
    private readonly ask: (signal: AbortSignal) => Promise<Envelope<T>>,
  ) {
    super(environment, { data: undefined, error: null, loading: true });
  }

  /** Asks again, also where an answer is on its way: it may be older than what made somebody ask. */
  readonly refresh = (): Promise<void> => {
    this.#asking?.abort.abort();
    const abort = new AbortController();
    const answered = this.#ask(abort);
    this.#asking = { abort, answered };
    return answered;
  };

  /** What is there, or else what comes. */
  readonly load = async (): Promise<DataSnapshot<T>> => {
    this.#waiting += 1;
    if (this.get().data === undefined) await (this.#asking?.answered ?? this.refresh());
    this.#waiting -= 1;
    return this.get();
  };

  protected start(): void {
    const fresh = this.#loadedMs !== null && this.environment.now() - this.#loadedMs <= FRESH_MS_MAX;
    if (!fresh && this.#asking === null) void this.refresh();
  }

  protected stop(): void {
    if (this.#waiting === 0) this.#asking?.abort.abort();
  }

  async #ask(abort: AbortController): Promise<void> {
    this.set({ ...this.get(), loading: true });
    const answer = await this.ask(abort.signal);
    if (this.#asking?.abort !== abort) return this.#asking?.answered;
    this.#asking = null;
    if (answer.ok) this.#loadedMs = this.environment.now();
    if (answer.ok) this.set({ data: answer.data, error: null, loading: false });
    else this.set({ ...this.get(), error: answer.error.code === CANCELLED ? null : answer.error, loading: false });
  }
}
