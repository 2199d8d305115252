// Approvals that were listed while the inbox was open and are listed no more: they stay in view, with who decided.
import type { Asked } from "./asked";

/** So long it rests before it asks again after a failure; each time twice as long, up to the second. */
const AGAIN_MS = 1_000;
const AGAIN_MS_MAX = 30_000;

/** What became of an approval; nothing where there is no such one, and a failure where nobody could say. */
export type Ask = (id: string) => Promise<{ ok: true; asked: Asked | null } | { ok: false }>;

/** What was decided while somebody looked, the last first. */
export class Gone {
  #gone: readonly Asked[] = [];
  /** What was listed and has not been told of since. */
  readonly #seen = new Set<string>();
  readonly #asking = new Set<string>();
  #listed: ReadonlySet<string> = new Set();
  #failures = 0;
  #again: ReturnType<typeof setTimeout> | null = null;
  readonly #listeners = new Set<() => void>();

  constructor(private readonly ask: Ask) {}

  get = (): readonly Asked[] => this.#gone;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#rest();
    };
  };

  /** Takes the list as it is now, and asks what became of those that it had and has no more. */
  list(ids: readonly string[]): void {
    this.#listed = new Set(ids);
    for (const id of ids) this.#seen.add(id);
    this.#askAll();
  }

  #askAll(): void {
    this.#rest();
    for (const id of this.#seen) {
      if (!this.#listed.has(id) && !this.#asking.has(id)) void this.#askOne(id);
    }
  }

  async #askOne(id: string): Promise<void> {
    this.#asking.add(id);
    const answer = await this.ask(id);
    this.#asking.delete(id);
    if (!answer.ok) return this.#askLater();
    this.#failures = 0;
    // Listed again meanwhile: it is still to be told of.
    if (!this.#listed.has(id)) this.#seen.delete(id);
    const { asked } = answer;
    if (asked === null || asked.state === "open") return;
    this.#gone = [asked, ...this.#gone.filter((one) => one.id !== id)];
    for (const listener of this.#listeners) listener();
  }

  #askLater(): void {
    if (this.#again !== null || this.#listeners.size === 0) return;
    const wait = Math.min(AGAIN_MS * 2 ** this.#failures, AGAIN_MS_MAX);
    this.#failures += 1;
    this.#again = setTimeout(() => {
      this.#again = null;
      this.#askAll();
    }, wait);
  }

  #rest(): void {
    if (this.#again !== null) clearTimeout(this.#again);
    this.#again = null;
  }
}
