// A unified diff as text, in files and hunks. For requests that carry their patch; a run's own diff comes from the hub in hunks.
import type { Hunk, Line } from "./model";

/** One file of a patch. */
export interface PatchFile {
  path: string;
  hunks: Hunk[];
  /** Lines outside of hunks that say more than its name: modes, renames, binaries. */
  notes: string[];
}

const NAMED = /^(?:\+\+\+|---) (?:[ab]\/)?(.+?)(?:\t.*)?$/;
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Reads line by line. A hunk's head says how many lines it has, so that no line of it is taken for something else. */
class Reader {
  readonly files: PatchFile[] = [];
  #file: PatchFile | undefined;
  #hunk: Hunk | undefined;
  #old = 0;
  #new = 0;
  #oldLeft = 0;
  #newLeft = 0;

  read(line: string): void {
    if (this.#hunk && (this.#oldLeft > 0 || this.#newLeft > 0)) this.#inHunk(this.#hunk, line);
    else if (HUNK.test(line)) this.#begin(line);
    else if (line.startsWith("diff --git ")) this.#next(/ b\/(.+)$/.exec(line)?.[1] ?? line);
    else if (line.startsWith("--- ") || line.startsWith("+++ ")) this.#named(line);
    else if (line !== "" && !line.startsWith("index ") && !line.startsWith("\\")) (this.#file ?? this.#next("")).notes.push(line);
  }

  #next(path: string): PatchFile {
    this.#file = { path, hunks: [], notes: [] };
    this.#hunk = undefined;
    this.files.push(this.#file);
    return this.#file;
  }

  #named(line: string): void {
    const file = this.#file === undefined || this.#file.hunks.length > 0 ? this.#next("") : this.#file;
    const path = NAMED.exec(line)?.[1];
    if (path !== undefined && path !== "/dev/null") file.path = path;
  }

  #begin(line: string): void {
    const [, old = "0", oldLines = "1", now = "0", newLines = "1"] = HUNK.exec(line) ?? [];
    const file = this.#file ?? this.#next("");
    [this.#old, this.#new, this.#oldLeft, this.#newLeft] = [Number(old), Number(now), Number(oldLines), Number(newLines)];
    this.#hunk = { id: file.hunks.length + 1, oldStart: this.#old, newStart: this.#new, lines: [] };
    file.hunks.push(this.#hunk);
  }

  #inHunk(hunk: Hunk, line: string): void {
    if (line.startsWith("\\")) return;
    const read = lineOf(line, this.#old, this.#new);
    hunk.lines.push(read);
    if (read.old !== undefined) [this.#old, this.#oldLeft] = [this.#old + 1, this.#oldLeft - 1];
    if (read.new !== undefined) [this.#new, this.#newLeft] = [this.#new + 1, this.#newLeft - 1];
  }
}

function lineOf(line: string, old: number, now: number): Line {
  const text = line.slice(1);
  if (line.startsWith("+")) return { kind: "added", new: now, text };
  if (line.startsWith("-")) return { kind: "removed", old, text };
  return { kind: "context", old, new: now, text };
}

/** The files of a patch. What cannot be read as a diff gives none, and is to be shown as it is. */
export function parsePatch(patch: string): PatchFile[] {
  const reader = new Reader();
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) reader.read(line);
  return reader.files;
}
