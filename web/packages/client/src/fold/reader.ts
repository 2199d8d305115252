// Puts events into order: what came twice is taken once, and what came too early waits for what is missing.

import type { RunEvent, RunView } from "../view.js";
import { RunFold } from "./fold.js";

/** So many events wait for one that is missing; further ones are read again later. */
export const HELD_EVENTS_MAX = 1_024;

/** A run whose events come in any order, and some of them twice. */
export class RunReader {
  readonly #fold = new RunFold();
  readonly #held = new Map<number, RunEvent>();

  /** The place of the last event that was taken. */
  get lastSequence(): number {
    return this.#fold.lastSequence;
  }

  /** Whether nothing can follow. */
  get isOver(): boolean {
    return this.#fold.isOver;
  }

  /** Takes an event, now or when its turn comes. */
  push(event: RunEvent): void {
    if (event.sequence > this.#fold.lastSequence + 1) return this.#hold(event);
    // One that came before is not taken twice.
    this.#fold.apply(event);
    this.#drain();
  }

  /** What is missing before the events that wait, if any wait. */
  gap(): { from: number; to: number } | null {
    if (this.#held.size === 0) return null;
    return { from: this.#fold.lastSequence + 1, to: Math.min(...this.#held.keys()) - 1 };
  }

  /** Goes on without what is missing. */
  giveUp(): void {
    const gap = this.gap();
    if (gap === null) return;
    this.#fold.skip(gap.to);
    this.#drain();
  }

  /** Forgets what waits: it comes again. */
  forget(): void {
    this.#held.clear();
  }

  /** What all events so far say. */
  view(): RunView {
    return this.#fold.view();
  }

  #hold(event: RunEvent): void {
    this.#held.set(event.sequence, event);
    // The latest are the first to come again.
    if (this.#held.size > HELD_EVENTS_MAX) this.#held.delete(Math.max(...this.#held.keys()));
  }

  #drain(): void {
    const next = () => this.#held.get(this.#fold.lastSequence + 1);
    for (let event = next(); event !== undefined; event = next()) {
      this.#held.delete(event.sequence);
      this.#fold.apply(event);
    }
  }
}
