// A clock that goes only when it is told to, and a page that can be hidden.

import type { Environment } from "../../src/index.js";
import type { Store } from "../../src/index.js";

/** A place to run in that tests control. Frames come by themselves unless they are held. */
export class TestEnvironment implements Environment {
  #nowMs = Date.parse("2026-11-16T09:00:00.000Z");
  #timers = new Set<{ atMs: number; run: () => void }>();
  #watching = new Set<() => void>();
  #frames: (() => void)[] = [];
  #hidden = false;
  framesHeld = false;
  chance = 0;

  now = () => this.#nowMs;
  random = () => this.chance;

  after = (ms: number, run: () => void) => {
    const timer = { atMs: this.#nowMs + ms, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  frame = (run: () => void) => {
    if (this.#hidden) return null;
    let wanted = true;
    const painted = () => wanted && run();
    if (this.framesHeld) this.#frames.push(painted);
    else setImmediate(painted);
    return () => void (wanted = false);
  };

  hidden = () => this.#hidden;

  onVisibility = (run: () => void) => {
    this.#watching.add(run);
    return () => void this.#watching.delete(run);
  };

  onOnline = () => () => undefined;

  /** Hides the page or shows it again. */
  show(shown: boolean): void {
    this.#hidden = !shown;
    for (const run of [...this.#watching]) run();
  }

  /** Whether something waits for the next frame. */
  get isFrameWanted(): boolean {
    return this.#frames.length > 0;
  }

  /** Paints what waits for it. */
  paint(): void {
    for (const run of this.#frames.splice(0)) run();
  }

  /** Lets time pass: timers fire in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = endMs;
  }

  /** How long until the next timer. */
  get nextMs(): number | null {
    const times = [...this.#timers].map((timer) => timer.atMs);
    return times.length === 0 ? null : Math.min(...times) - this.#nowMs;
  }

  #next(endMs: number) {
    const due = [...this.#timers].filter((timer) => timer.atMs <= endMs);
    return due.sort((a, b) => a.atMs - b.atMs)[0];
  }
}

/** Waits until a store says what it should, and does something meanwhile again and again; fails where that takes too long. */
export function until<S>(store: Store<S>, holds: (snapshot: S) => boolean, meanwhile = (): void => undefined): Promise<S> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (!holds(store.get())) return;
      clearTimeout(limit);
      clearInterval(pump);
      unsubscribe();
      resolve(store.get());
    };
    const pump = setInterval(() => {
      meanwhile();
      look();
    }, 5);
    const limit = setTimeout(() => {
      clearInterval(pump);
      unsubscribe();
      reject(new Error(`It never came to that: ${JSON.stringify(store.get()).slice(0, 400)}`));
    }, 4_000);
    const unsubscribe = store.subscribe(look);
    look();
  });
}
