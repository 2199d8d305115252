// Which rows are shown. Following a run costs what was added, not what is there already.
import { isQuiet, type Row, type Rows } from "@runyard/react";

/** Rows near the end may still turn into something else; those before do not. */
const UNSETTLED_MAX = 64;
const EMPTY: Rows = {
  length: 0,
  rev: -1,
  at: () => {
    throw new RangeError("no rows");
  },
  indexOf: () => -1,
};

/** The shown rows of one view, kept current from one snapshot to the next. */
export class ShownRows {
  private rows: Rows = EMPTY;
  private seen = 0;
  private lastKey = "";
  private indices: number[] = [];
  private turns: number[] = [];
  /** Gaps that only rows which are left out stand between, as one, at the place of the first. */
  private merged = new Map<number, Row>();
  /** Grows when rows moved that were shown already. */
  moved = 0;

  constructor(private readonly all: boolean) {}

  /** Takes in a newer list. Doing it twice changes nothing. */
  update(rows: Rows): this {
    if (rows === this.rows) return this;
    const appended = this.seen <= rows.length && (this.seen === 0 || rows.at(this.seen - 1).key === this.lastKey);
    if (!appended) this.moved += 1;
    this.forgetFrom(appended ? Math.max(0, this.seen - UNSETTLED_MAX) : 0);
    this.rows = rows;
    for (let index = this.seen; index < rows.length; index += 1) {
      const row = rows.at(index);
      if (!this.all && (isQuiet(row) || this.merge(row))) continue;
      if (row.kind === "turn") this.turns.push(this.indices.length);
      this.indices.push(index);
    }
    this.seen = rows.length;
    this.lastKey = rows.length === 0 ? "" : rows.at(rows.length - 1).key;
    return this;
  }

  /** Lets a gap go on from the one before it; says whether it did. */
  private merge(row: Row): boolean {
    const before = this.indices.at(-1);
    if (row.kind !== "gap" || before === undefined) return false;
    const gap = this.merged.get(before) ?? this.rows.at(before);
    if (gap.kind !== "gap") return false;
    const { last, endAt } = row;
    const waiting = gap.waiting === "person" ? gap.waiting : row.waiting;
    this.merged.set(before, { ...gap, last, endAt, waiting, ms: Date.parse(endAt) - Date.parse(gap.at) });
    return true;
  }

  private forgetFrom(index: number): void {
    while (this.indices.length > 0 && (this.indices.at(-1) ?? -1) >= index) this.indices.pop();
    while (this.turns.length > 0 && (this.turns.at(-1) ?? -1) >= this.indices.length) this.turns.pop();
    for (const place of this.merged.keys()) if (place >= index) this.merged.delete(place);
    this.seen = index;
  }

  get length(): number {
    return this.indices.length;
  }

  at(position: number): Row {
    const index = this.indices[position];
    if (index === undefined) throw new RangeError(`no row at ${position}`);
    return this.merged.get(index) ?? this.rows.at(index);
  }

  /** Where the row of an event is shown; `hidden` where its row is left out, nothing where the event is not there. */
  positionOf(sequence: number): number | "hidden" | undefined {
    const index = this.rows.indexOf(sequence);
    if (index === -1) return undefined;
    const found = lowerBound(this.indices, index);
    return this.indices[found] === index ? found : "hidden";
  }

  /** Where the row of an event is shown, or the next one that is. */
  near(sequence: number): number | undefined {
    const index = this.rows.indexOf(sequence);
    if (index === -1 || this.indices.length === 0) return undefined;
    return Math.min(lowerBound(this.indices, index), this.indices.length - 1);
  }

  /** The heading that stands over a position. */
  turnOver(position: number): Row | undefined {
    const found = lowerBound(this.turns, position + 1) - 1;
    const turn = this.turns[found];
    return turn === undefined ? undefined : this.at(turn);
  }

  /** The sequence of the event that begins the turn after this heading, if there is one. */
  turnAfter(position: number): number | undefined {
    const next = this.turns[lowerBound(this.turns, position + 1)];
    return next === undefined ? undefined : this.at(next).first;
  }
}

/** The first place in a sorted list that is not below a value. */
export function lowerBound(list: readonly number[], value: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle] ?? Infinity) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
