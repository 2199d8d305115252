// Lets a run's events through at a steady rate by a clock of its own, or not at all for a while, and writes down what it let through.
import type { IncomingMessage, ServerResponse } from "node:http";

const TICK_MS = 10;

/** What was let through at once. */
export interface Slice {
  /** When, counted from the release. */
  ms: number;
  events: number;
}

/** The pace of one run's events, of which one page at a time hears. */
export class Pace {
  readonly eventsASecond: number;
  /** How many events wait. */
  waiting = 0;
  /** What was let through since the release. */
  slices: Slice[] = [];
  #held = false;
  #releasedAt = performance.now();

  constructor(eventsASecond: number) {
    this.eventsASecond = eventsASecond;
  }

  /** Lets nothing through until `release`. */
  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#releasedAt = performance.now();
    this.slices = [];
  }

  /** Lets the events of a stream through, as if they happened now. */
  stream(from: IncomingMessage, answer: ServerResponse): void {
    const blocks: string[] = [];
    let text = "";
    let ended = false;
    from.setEncoding("utf8");
    from.on("data", (chunk: string) => {
      text += chunk;
      const whole = text.split("\n\n");
      text = whole.pop() ?? "";
      blocks.push(...whole);
      this.waiting = blocks.length;
    });
    from.on("end", () => (ended = true));
    let [before, due] = [performance.now(), 0];
    const timer = setInterval(() => {
      const now = performance.now();
      const since = Math.max(before, this.#releasedAt);
      before = now;
      if (this.#held) return;
      due += ((now - since) / 1000) * this.eventsASecond;
      const slice = blocks.splice(0, Math.floor(due));
      this.waiting = blocks.length;
      // Nothing is saved up while nothing waits: it would come as a burst.
      due = blocks.length === 0 ? 0 : due - slice.length;
      if (slice.length > 0) {
        this.slices.push({ ms: now - this.#releasedAt, events: slice.length });
        answer.write(slice.map((block) => `${block}\n\n`).join(""));
      }
      if (ended && blocks.length === 0) answer.end();
    }, TICK_MS);
    answer.on("close", () => clearInterval(timer));
  }
}
