import type { FileChange } from "../../src/pages/diff/model";

/** A file that changed, for tests. */
export function file(id: string, more: Partial<FileChange> = {}): FileChange {
  return { id, path: `src/${id}.ts`, change: "modified", content: "text", insertions: 4, deletions: 2, hunks: 3, oldBytes: 10, newBytes: 12, protected: false, ...more };
}
