// All events in order, for the view that shows them raw. Kept current from the rows that changed.
import type { Row, RunEvent, Rows } from "@runyard/react";

/** The events of a run by their place. */
export class EventList {
  private rows: Row[] = [];
  private bySequence: (RunEvent | undefined)[] = [];
  private known: RunEvent[] = [];
  private last: Rows | null = null;

  /** Takes in a newer list of rows; only those that are others than before are read. */
  update(rows: Rows): this {
    if (rows === this.last) return this;
    this.last = rows;
    let added = false;
    for (let index = 0; index < rows.length; index += 1) {
      const row = rows.at(index);
      if (row === this.rows[index]) continue;
      this.rows[index] = row;
      for (const event of row.events) {
        if (this.bySequence[event.sequence] !== undefined) continue;
        this.bySequence[event.sequence] = event;
        added = true;
      }
    }
    this.rows.length = rows.length;
    if (added) this.known = this.bySequence.filter((event) => event !== undefined);
    return this;
  }

  get length(): number {
    return this.known.length;
  }

  at(position: number): RunEvent {
    const event = this.known[position];
    if (event === undefined) throw new RangeError(`no event at ${position}`);
    return event;
  }

  /** Where the event of a sequence is, or nothing. */
  positionOf(sequence: number): number | undefined {
    let low = 0;
    let high = this.known.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.known[middle]?.sequence ?? Infinity) < sequence) low = middle + 1;
      else high = middle;
    }
    return this.known[low]?.sequence === sequence ? low : undefined;
  }
}
