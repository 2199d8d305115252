// Gathers what comes and hands it over once per frame.

import type { Environment } from "../environment.js";

/** Without frames, as in a hidden page, things are handed over this often. */
export const FLUSH_MS = 250;
/** So many things are handed over at a time, so that no frame takes long. */
export const FLUSH_MAX = 4_000;
/** More than so many do not wait. */
export const QUEUED_MAX = 20_000;

/** What waits for the next frame. */
export class FlushQueue<T> {
  #items: T[] = [];
  #cancel: (() => void) | null = null;

  constructor(
    private readonly environment: Environment,
    private readonly take: (items: readonly T[]) => void,
  ) {}

  /** Adds one. */
  push(item: T): void {
    this.#items.push(item);
    if (this.#items.length >= QUEUED_MAX) this.flush();
    else this.#schedule();
  }

  /** Hands over all of it now. */
  flush(): void {
    this.#hand(this.#items.length);
  }

  #schedule(): void {
    if (this.#cancel !== null) return;
    const run = () => {
      this.#hand(FLUSH_MAX);
      if (this.#items.length > 0) this.#schedule();
    };
    // A frame may never come where the page is hidden meanwhile, so a timer runs beside it.
    const frame = this.environment.frame(run);
    const timer = this.environment.after(FLUSH_MS, run);
    this.#cancel = () => {
      frame?.();
      timer();
    };
  }

  #hand(count: number): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#items.length === 0) return;
    const items = this.#items.slice(0, count);
    this.#items = this.#items.slice(count);
    this.take(items);
  }
}
