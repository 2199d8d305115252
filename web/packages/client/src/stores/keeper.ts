// Reads something again when it is worth it, never twice at a time and never too often.

import type { Environment } from "../environment.js";

/** So long it rests between two reads. */
const REST_MS = 300;
/** So long after a read that failed it reads by itself again. */
export const AGAIN_MS = 5_000;

/** What is to follow a read: nothing before it is wanted, or another by itself. */
export type Followed = "rest" | "again";

/** Keeps one thing current. */
export class Keeper {
  #wanted = false;
  #busy: AbortController | null = null;
  #cancelRest: (() => void) | null = null;
  #cancelAgain: () => void = () => undefined;
  #waiting: (() => void)[] = [];

  constructor(
    private readonly environment: Environment,
    private readonly read: (signal: AbortSignal) => Promise<Followed>,
    private readonly restMs = REST_MS,
  ) {}

  /** Reads soon, or once more after the read that is under way. */
  readonly want = (): void => {
    this.#wanted = true;
    if (this.#busy === null && this.#cancelRest === null) void this.#work();
  };

  /** Reads now, and is done when it is read. */
  readonly now = (): Promise<void> =>
    new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#cancelRest?.();
      this.#cancelRest = null;
      this.want();
    });

  /** Ends what is under way. */
  stop(): void {
    this.#wanted = false;
    this.#cancelRest?.();
    this.#cancelRest = null;
    this.#cancelAgain();
    this.#busy?.abort();
    this.#busy = null;
    this.#release();
  }

  async #work(): Promise<void> {
    const busy = new AbortController();
    this.#busy = busy;
    this.#wanted = false;
    this.#cancelAgain();
    const waiting = this.#waiting.splice(0);
    const followed = await this.read(busy.signal);
    if (this.#busy === busy) this.#rest(followed);
    for (const done of waiting) done();
  }

  #rest(followed: Followed): void {
    this.#busy = null;
    if (this.#waiting.length > 0) return void this.#work();
    this.#cancelRest = this.environment.after(this.restMs, () => {
      this.#cancelRest = null;
      if (this.#wanted) void this.#work();
      else if (followed === "again") this.#cancelAgain = this.environment.after(AGAIN_MS, this.want);
    });
  }

  #release(): void {
    for (const done of this.#waiting.splice(0)) done();
  }
}
