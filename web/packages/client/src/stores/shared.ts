// A store that several may look at: it begins with the first of them and ends after the last.

import type { Environment } from "../environment.js";

/** Something that can be looked at and says when it has changed. What it gives never changes. */
export interface Store<S> {
  get(): S;
  subscribe(listener: () => void): () => void;
}

/** So long a store goes on after its last subscriber: a page that is built anew takes it up again. */
export const LINGER_MS = 250;

/** What all stores have in common. */
export abstract class SharedStore<S> implements Store<S> {
  readonly #listeners = new Set<() => void>();
  #stopping: (() => void) | null = null;
  #started = false;
  #snapshot: S;

  constructor(
    protected readonly environment: Environment,
    initial: S,
  ) {
    this.#snapshot = initial;
  }

  /** What it is now. */
  readonly get = (): S => this.#snapshot;

  /** Calls on every change; gives what ends it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    // Each subscription is its own, also where two share a function.
    const own = () => listener();
    this.#listeners.add(own);
    this.#stopping?.();
    this.#stopping = null;
    if (!this.#started) {
      this.#started = true;
      this.start();
    }
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#stopLater();
    };
  };

  /** Whether somebody looks. */
  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }

  /** Whether it is at work. */
  get isStarted(): boolean {
    return this.#started;
  }

  /** Changes it and tells everybody. */
  protected set(snapshot: S): void {
    if (Object.is(snapshot, this.#snapshot)) return;
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener();
  }

  /** Begins to keep itself current. */
  protected abstract start(): void;
  /** Ends that. */
  protected abstract stop(): void;

  #stopLater(): void {
    this.#stopping = this.environment.after(LINGER_MS, () => {
      this.#stopping = null;
      this.#started = false;
      this.stop();
    });
  }
}

/** Stores by name, the same one for everybody; of those that nobody looks at only the last few are kept. */
export class Shelf<T extends { readonly isStarted: boolean }> {
  readonly #stores = new Map<string, T>();

  constructor(private readonly keptMax: number) {}

  /** The store of a name, made where there is none. */
  take(name: string, make: () => T): T {
    const store = this.#stores.get(name) ?? make();
    this.#stores.delete(name);
    this.#stores.set(name, store);
    let idle = 0;
    for (const [other, one] of [...this.#stores].reverse()) {
      if (!one.isStarted) idle += 1;
      if (!one.isStarted && idle > this.keptMax) this.#stores.delete(other);
    }
    return store;
  }

  /** All of them. */
  all(): T[] {
    return [...this.#stores.values()];
  }

  /** Forgets all that nobody looks at. */
  clear(): void {
    for (const [name, store] of this.#stores) {
      if (!store.isStarted) this.#stores.delete(name);
    }
  }
}
