// What changed, as the hub lists it: files first, then the hunks of each.

/** How a file changed; words that this page does not know are shown as they are. */
export interface FileChange {
  id: string;
  path: string;
  oldPath?: string | undefined;
  change: string;
  oldMode?: string | undefined;
  newMode?: string | undefined;
  /** `text`, `binary`, `too_large`, or `same` where only its name or mode changed. */
  content: string;
  insertions: number;
  deletions: number;
  hunks: number;
  oldBytes: number;
  newBytes: number;
  protected: boolean;
}

/** A line of a hunk, with its numbers in the old and the new text. */
export interface Line {
  kind: string;
  old?: number | undefined;
  new?: number | undefined;
  text: string;
}

/** A piece of a file that changed, with the lines around it. */
export interface Hunk {
  id: number;
  oldStart: number;
  newStart: number;
  lines: Line[];
}

/** The content of one file's change. */
export interface FileBody {
  hunks: Hunk[];
  patch: string;
  omitted: number;
}

/** The contents of files, as far as they are here. */
export type Bodies = (file: string) => FileBody | undefined;

/** A file that is chosen, as the hub takes it. */
export interface SelectedFile {
  file: string;
  hunks?: number[];
}

/** A file with more changed lines than this is folded until somebody wants to see it. */
export const FOLD_LINES = 400;
/** The mode of a symbolic link, as git writes it. */
export const LINK_MODE = "120000";
/** The mode of a submodule. */
export const SUBMODULE_MODE = "160000";

/** Whether it is a symbolic link, or was one where it is gone. */
export const isLink = (file: FileChange): boolean => (file.newMode ?? file.oldMode) === LINK_MODE;

/** Whether lines changed, and not only its name, mode or bytes. */
export const hasLines = (file: FileChange): boolean => file.insertions + file.deletions > 0;

/** How many lines of a kind a hunk has. */
export function linesOf(hunk: Hunk, kind: "added" | "removed"): number {
  return hunk.lines.reduce((sum, line) => sum + (line.kind === kind ? 1 : 0), 0);
}

/** What a hunk says, to tell whether it is the same after the changes were made anew. Where it stands does not count. */
export function fingerprint(hunk: Hunk): string {
  return hunk.lines.map((line) => `${line.kind === "added" ? "+" : line.kind === "removed" ? "-" : " "}${line.text}`).join("\n");
}

/** The words after the second `@@`, by hunk: where in the file it is, as the diff names it. */
export function hunkPlaces(patch: string): string[] {
  const places: string[] = [];
  for (const line of patch.split("\n")) {
    const head = /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@(.*)$/.exec(line);
    if (head) places.push((head[1] ?? "").trim());
  }
  return places;
}

/** The head of a hunk as a unified diff writes it. */
export function hunkHead(hunk: Hunk): string {
  const oldLines = hunk.lines.length - linesOf(hunk, "added");
  const newLines = hunk.lines.length - linesOf(hunk, "removed");
  return `@@ −${hunk.oldStart},${oldLines} +${hunk.newStart},${newLines} @@`;
}
