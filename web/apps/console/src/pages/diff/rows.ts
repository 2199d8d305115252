// The lines of a hunk as they are drawn: one below the other, or old and new side by side.
import type { Line } from "./model";
import { type Piece, wordDiff } from "./words";

/** A line as it is drawn. */
export interface Cell {
  line: Line;
  /** The words that changed; the whole line where there is no counterpart. */
  pieces: Piece[] | null;
}

/** The old and the new line side by side. */
export interface SplitRow {
  left: Cell | null;
  right: Cell | null;
}

/** Lines with the words marked that changed between a removed line and the added one that replaces it. */
export function unifiedRows(lines: readonly Line[]): Cell[] {
  const cells: Cell[] = lines.map((line) => ({ line, pieces: null }));
  for (const [removed, added] of pairs(lines)) {
    const [before, after] = [cells[removed], cells[added]];
    if (!before || !after) continue;
    const words = wordDiff(before.line.text, after.line.text);
    if (!words) continue;
    before.pieces = words.before;
    after.pieces = words.after;
  }
  return cells;
}

/** The same side by side. */
export function splitRows(lines: readonly Line[]): SplitRow[] {
  const cells = unifiedRows(lines);
  const rows: SplitRow[] = [];
  let at = 0;
  while (at < cells.length) {
    const cell = cells[at];
    if (!cell) break;
    if (cell.line.kind === "context") {
      rows.push({ left: cell, right: cell });
      at += 1;
      continue;
    }
    const { removed, added, end } = blockAt(lines, at);
    for (let row = 0; row < Math.max(removed.length, added.length); row += 1) {
      rows.push({ left: cells[removed[row] ?? -1] ?? null, right: cells[added[row] ?? -1] ?? null });
    }
    at = end;
  }
  return rows;
}

/** The removed lines from here on and the added ones behind them, by index. */
function blockAt(lines: readonly Line[], start: number): { removed: number[]; added: number[]; end: number } {
  const [removed, added]: [number[], number[]] = [[], []];
  let at = start;
  while (lines[at]?.kind === "removed") removed.push(at++);
  while (lines[at]?.kind === "added") added.push(at++);
  // A line of a kind that is not known stands by itself.
  if (at === start) added.push(at++);
  return { removed, added, end: at };
}

function pairs(lines: readonly Line[]): [number, number][] {
  const found: [number, number][] = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at]?.kind === "context") {
      at += 1;
      continue;
    }
    const { removed, added, end } = blockAt(lines, at);
    for (let pair = 0; pair < Math.min(removed.length, added.length); pair += 1) {
      const [left, right] = [removed[pair], added[pair]];
      if (left !== undefined && right !== undefined) found.push([left, right]);
    }
    at = end;
  }
  return found;
}
