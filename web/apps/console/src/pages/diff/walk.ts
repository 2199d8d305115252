// Going from hunk to hunk. A file without hunks is one stop of its own.
import type { FileChange } from "./model";

/** Where a reader is. */
export interface Stop {
  file: number;
  /** 1, 2, 3, …; 0 for the file as a whole. */
  hunk: number;
}

const last = (file: FileChange | undefined): number => file?.hunks ?? 0;
const first = (file: FileChange | undefined): number => (last(file) > 0 ? 1 : 0);

/** The next stop, or the one before; the same at the end. Nothing where there are no files. */
export function walk(files: readonly FileChange[], from: Stop | null, step: 1 | -1): Stop | null {
  if (files.length === 0) return null;
  if (from === null) return { file: 0, hunk: first(files[0]) };
  const hunk = from.hunk + step;
  if (hunk >= 1 && hunk <= last(files[from.file])) return { file: from.file, hunk };
  const file = from.file + step;
  if (file < 0 || file >= files.length) return from;
  return { file, hunk: step > 0 ? first(files[file]) : last(files[file]) };
}
