// Which words of a changed line are new and which are gone.

/** A piece of a line. */
export interface Piece {
  text: string;
  changed: boolean;
}

/** A line with more pieces than this is compared by its beginning and end only. */
const PIECES_MAX = 160;
/** Lines that share less than this are two lines, and not one that changed. */
const SHARED_MIN = 0.3;

/** The old and the new line in pieces; nothing where they have too little in common. */
export function wordDiff(before: string, after: string): { before: Piece[]; after: Piece[] } | null {
  if (before === after) return null;
  const old = pieces(before);
  const now = pieces(after);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  const shorter = Math.min(old.length, now.length) - head;
  while (tail < shorter && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const inOld = new Array<boolean>(old.length).fill(true);
  const inNow = new Array<boolean>(now.length).fill(true);
  for (let at = 0; at < head; at += 1) inOld[at] = inNow[at] = false;
  for (let at = 1; at <= tail; at += 1) inOld[old.length - at] = inNow[now.length - at] = false;
  common(old, now, head, tail, inOld, inNow);
  const shared = old.reduce((sum, piece, at) => sum + (inOld[at] || piece.trim() === "" ? 0 : piece.length), 0);
  const longest = Math.max(solid(old), solid(now));
  if (longest > 0 && shared / longest < SHARED_MIN) return null;
  return { before: joined(old, inOld), after: joined(now, inNow) };
}

function solid(all: readonly string[]): number {
  return all.reduce((sum, piece) => sum + (piece.trim() === "" ? 0 : piece.length), 0);
}

function pieces(line: string): string[] {
  return line.match(/[\p{L}\p{N}_-]+|\s+|[^\p{L}\p{N}_\s-]/gu) ?? [];
}

/** Marks what both have in the same order between head and tail: the longest common part. */
function common(old: string[], now: string[], head: number, tail: number, inOld: boolean[], inNow: boolean[]): void {
  const [rows, columns] = [old.length - head - tail, now.length - head - tail];
  if (rows <= 0 || columns <= 0 || rows > PIECES_MAX || columns > PIECES_MAX) return;
  const width = columns + 1;
  const longest = new Uint16Array((rows + 1) * width);
  const at = (row: number, column: number): number => longest[row * width + column] ?? 0;
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const same = old[head + row] === now[head + column];
      const [down, right] = [at(row + 1, column), at(row, column + 1)];
      longest[row * width + column] = same ? at(row + 1, column + 1) + 1 : Math.max(down, right);
    }
  }
  let [row, column] = [0, 0];
  while (row < rows && column < columns) {
    if (old[head + row] === now[head + column]) {
      inOld[head + row] = inNow[head + column] = false;
      row += 1;
      column += 1;
    } else if (at(row + 1, column) >= at(row, column + 1)) row += 1;
    else column += 1;
  }
}

function joined(all: readonly string[], marked: readonly boolean[]): Piece[] {
  const result: Piece[] = [];
  // A space between two changed words is part of the change: one mark is easier to read than two.
  const between = (at: number): boolean => all[at]?.trim() === "" && marked[at - 1] === true && marked[at + 1] === true;
  const changed = marked.map((mark, at) => mark || between(at));
  all.forEach((text, at) => {
    const last = result.at(-1);
    if (last && last.changed === changed[at]) last.text += text;
    else result.push({ text, changed: changed[at] ?? false });
  });
  return result;
}
