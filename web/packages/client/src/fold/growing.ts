// Lists that grow while others hold them.

/** A list that is copied only when it has changed since somebody took it. */
export class Growing<T> {
  #items: T[] = [];
  #taken: readonly T[] = [];
  #changed = false;

  /** Adds one. */
  push(item: T): void {
    this.#items.push(item);
    this.#changed = true;
  }

  /** Puts another in its place. */
  replace(index: number, item: T): void {
    this.#items[index] = item;
    this.#changed = true;
  }

  /** How many there are. */
  get length(): number {
    return this.#items.length;
  }

  /** The list as it is now, which does not change any more. */
  take(): readonly T[] {
    if (this.#changed) this.#taken = this.#items.slice();
    this.#changed = false;
    return this.#taken;
  }
}
