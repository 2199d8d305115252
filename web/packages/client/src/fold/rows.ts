// The timeline as an immutable list: a new one shares every part that did not change with the one before.

import type { Row, Rows } from "../view.js";

/** So many rows are copied together when one of them changes. */
const PART_ROWS = 256;

/** Which row holds which event. It only grows, so all lists of one run share it. */
class Places {
  readonly sequences: number[] = [];
  readonly indices: number[] = [];

  add(sequence: number, index: number): void {
    this.sequences.push(sequence);
    this.indices.push(index);
  }

  /** The last of the first `count` that is not after the sequence, or -1; they are in order. */
  find(sequence: number, count: number): number {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.sequences[middle] ?? Infinity) <= sequence) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

class SharedRows implements Rows {
  readonly #parts: readonly (readonly Row[])[];
  readonly #places: Places;
  readonly #placed: number;

  constructor(
    parts: readonly (readonly Row[])[],
    readonly length: number,
    readonly rev: number,
    places: Places,
  ) {
    this.#parts = parts;
    this.#places = places;
    this.#placed = places.sequences.length;
  }

  at(index: number): Row {
    const row = index < this.length ? this.#parts[Math.floor(index / PART_ROWS)]?.[index % PART_ROWS] : undefined;
    if (row === undefined) throw new RangeError(`There is no row ${index} of ${this.length}.`);
    return row;
  }

  indexOf(sequence: number): number {
    const place = this.#places.find(sequence, this.#placed);
    const index = this.#places.indices[place];
    if (index === undefined) return -1;
    if (this.#places.sequences[place] === sequence) return index;
    // A row of missing events is placed by the first of them and stands for all.
    const row = this.at(index);
    return row.kind === "missing" && sequence <= row.to ? index : -1;
  }
}

/** Makes the lists of one run, one after the other. */
export class RowsBuilder {
  readonly #places = new Places();
  #parts: Row[][] = [];
  /** The parts that no list has seen yet. */
  #own = new Set<number>();
  #length = 0;
  #rev = 0;
  #last: SharedRows = new SharedRows([], 0, 0, this.#places);

  /** Takes the next place in the list; it has to be filled before the list is made. */
  reserve(): number {
    this.#length += 1;
    return this.#length - 1;
  }

  /** Says that the event of this sequence is in the row at the index. Sequences only grow. */
  place(sequence: number, index: number): void {
    this.#places.add(sequence, index);
  }

  /** Puts a row at its place. */
  set(index: number, row: Row): void {
    const part = Math.floor(index / PART_ROWS);
    let rows = this.#parts[part];
    if (rows === undefined || !this.#own.has(part)) {
      rows = rows === undefined ? [] : rows.slice();
      this.#parts[part] = rows;
      this.#own.add(part);
    }
    rows[index % PART_ROWS] = row;
  }

  /** The list as it is now. */
  list(): Rows {
    if (this.#own.size === 0 && this.#length === this.#last.length) return this.#last;
    this.#rev += 1;
    this.#own.clear();
    this.#last = new SharedRows(this.#parts.slice(), this.#length, this.#rev, this.#places);
    return this.#last;
  }
}
