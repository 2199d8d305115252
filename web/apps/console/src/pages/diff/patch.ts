// A unified diff as text, in files and hunks. For requests that carry their patch; a run's own diff comes from the hub in hunks.
import { exactName } from "../../ui/visible";
import type { Hunk, Line } from "./model";

/** One file of a patch. */
export interface PatchFile {
  /** What it was called before and is called after; empty where that is not said. */
  old: string;
  now: string;
  /** Its hunks, and every line outside of them as it is, in their order. */
  parts: PatchPart[];
}

/** A part of a file's patch. */
export type PatchPart = { kind: "hunk"; hunk: Hunk } | { kind: "note"; text: string };

const NAMES = /^(---|\+\+\+|rename from|rename to) (.+)$/;
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Reads line by line. A hunk's head says how many lines it has, so that no line of it is taken for something else. */
class Reader {
  readonly files: PatchFile[] = [];
  #file: PatchFile | undefined;
  #hunk: Hunk | undefined;
  #hunks = 0;
  #old = 0;
  #new = 0;
  #oldLeft = 0;
  #newLeft = 0;

  read(line: string): void {
    if (this.#hunk && (this.#oldLeft > 0 || this.#newLeft > 0) && /^(?:[-+ ]|$)/.test(line)) this.#inHunk(this.#hunk, line);
    else if (HUNK.test(line)) this.#begin(line);
    else this.#outside(line);
  }

  #outside(line: string): void {
    const begun = this.#hunks > 0 && line.startsWith("--- ");
    const file = this.#file === undefined || begun || line.startsWith("diff --git ") ? this.#next() : this.#file;
    const [, word = "", name = ""] = NAMES.exec(line) ?? [];
    if (word === "---" || word === "rename from") file.old = named(name);
    if (word === "+++" || word === "rename to") file.now = named(name);
    file.parts.push({ kind: "note", text: line });
  }

  #next(): PatchFile {
    this.#file = { old: "", now: "", parts: [] };
    this.#hunk = undefined;
    this.#hunks = 0;
    this.files.push(this.#file);
    return this.#file;
  }

  #begin(line: string): void {
    const [, old = "0", oldLines = "1", now = "0", newLines = "1"] = HUNK.exec(line) ?? [];
    const file = this.#file ?? this.#next();
    [this.#old, this.#new, this.#oldLeft, this.#newLeft] = [Number(old), Number(now), Number(oldLines), Number(newLines)];
    this.#hunk = { id: (this.#hunks += 1), oldStart: this.#old, newStart: this.#new, lines: [] };
    file.parts.push({ kind: "hunk", hunk: this.#hunk });
  }

  #inHunk(hunk: Hunk, line: string): void {
    const read = lineOf(line, this.#old, this.#new);
    hunk.lines.push(read);
    if (read.old !== undefined) [this.#old, this.#oldLeft] = [this.#old + 1, this.#oldLeft - 1];
    if (read.new !== undefined) [this.#new, this.#newLeft] = [this.#new + 1, this.#newLeft - 1];
  }
}

/** A name without the letter of its side. What stands behind a tab may be a part of it, so it stays; a last tab only ends it. */
function named(name: string): string {
  return name.replace(/\t$/, "").replace(/^[ab]\//, "");
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

/** What a file of a patch is called: both of its names where they differ. */
export function patchName({ old, now }: Pick<PatchFile, "old" | "now">): string {
  if (old === "" || now === "" || old === now) return exactName(now === "" ? old : now);
  return `${exactName(old)} → ${exactName(now)}`;
}
