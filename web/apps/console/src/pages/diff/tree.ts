// The files by directory, as rows that can be counted: only those in view are drawn.
import type { FileChange } from "./model";

/** A row of the tree. */
export type TreeRow =
  | { kind: "directory"; path: string; files: readonly FileChange[]; folded: boolean }
  | { kind: "file"; file: FileChange; index: number; name: string; nested: boolean };

/** The directory of a path; nothing at the top. */
export function directoryOf(path: string): string {
  const end = path.lastIndexOf("/");
  return end < 0 ? "" : path.slice(0, end);
}

/** Files whose path, old or new, has the text in it. */
export function filtered(files: readonly FileChange[], text: string): readonly FileChange[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return files;
  return files.filter(({ path, oldPath }) => `${path}\n${oldPath ?? ""}`.toLowerCase().includes(wanted));
}

/** The rows of the tree: each directory once, its files below it. */
export function treeRows(files: readonly FileChange[], folded: ReadonlySet<string>): TreeRow[] {
  const byDirectory = new Map<string, { file: FileChange; index: number }[]>();
  files.forEach((file, index) => {
    const directory = directoryOf(file.path);
    const group = byDirectory.get(directory);
    if (group) group.push({ file, index });
    else byDirectory.set(directory, [{ file, index }]);
  });
  const rows: TreeRow[] = [];
  for (const [path, group] of byDirectory) {
    const isFolded = folded.has(path);
    if (path !== "") rows.push({ kind: "directory", path, files: group.map(({ file }) => file), folded: isFolded });
    if (isFolded) continue;
    for (const { file, index } of group) {
      const name = path === "" ? file.path : file.path.slice(path.length + 1);
      rows.push({ kind: "file", file, index, name, nested: path !== "" });
    }
  }
  return rows;
}
