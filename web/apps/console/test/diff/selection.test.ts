import { describe, expect, it } from "vitest";
import type { FileBody, Line } from "../../src/pages/diff/model";
import { choiceOf, choicesOf, counts, selection, tickOfAll, withFile, withFiles, withHunk, type Choices } from "../../src/pages/diff/selection";
import { file } from "./files";

const files = [file("a"), file("b"), file("p", { protected: true }), file("bin", { content: "binary", hunks: 0, insertions: 0, deletions: 0 })];
const none: Choices = new Map();

describe("selection (C22)", () => {
  it("sends nothing where it is what the hub applies without one: all but the protected files", () => {
    expect(selection(none, files)).toBeUndefined();
  });

  it("sends exactly what is shown as soon as it is something else", () => {
    const without = withFile(none, files[0]!, false);
    expect(selection(without, files)).toEqual([{ file: "b" }, { file: "bin" }]);
    const withProtected = withFile(none, files[2]!, true);
    expect(selection(withProtected, files)).toEqual([{ file: "a" }, { file: "b" }, { file: "p" }, { file: "bin" }]);
  });

  it("names hunks only where a file is chosen in part", () => {
    const some = withHunk(none, files[0]!, 2, false);
    expect(selection(some, files)).toEqual([{ file: "a", hunks: [1, 3] }, { file: "b" }, { file: "bin" }]);
    const again = withHunk(some, files[0]!, 2, true);
    expect(selection(again, files)).toBeUndefined();
  });

  it("leaves a file out when its last hunk is left out", () => {
    const out = [1, 2, 3].reduce((choices, hunk) => withHunk(choices, files[0]!, hunk, false), none);
    expect(choiceOf(out, files[0]!)).toBe("none");
    expect(selection(out, files)).toEqual([{ file: "b" }, { file: "bin" }]);
  });

  it("never chooses protected files with a directory or with all, only by name", () => {
    const cleared = withFiles(none, files, false);
    expect(selection(cleared, files)).toEqual([]);
    const all = withFiles(cleared, files, true);
    expect(choiceOf(all, files[2]!)).toBe("none");
    expect(selection(all, files)).toBeUndefined();
    expect(tickOfAll(all, files)).toBe("mixed");
  });

  it("takes a protected file off again with its directory", () => {
    const chosen = withFile(none, files[2]!, true);
    expect(choiceOf(withFiles(chosen, files, false), files[2]!)).toBe("none");
  });

  it("reads back a selection to the same selection", () => {
    const sent = [{ file: "a", hunks: [1] }, { file: "p" }];
    expect(selection(choicesOf(sent, files), files)).toEqual(sent);
  });

  it("counts files, hunks and lines of what is chosen", () => {
    const line = (kind: string): Line => ({ kind, text: "x" });
    const body: FileBody = { patch: "", omitted: 0, hunks: [1, 2, 3].map((id) => ({ id, oldStart: id, newStart: id, lines: [line("added"), line("removed"), line("context")] })) };
    const some = withHunk(none, files[0]!, 2, false);
    const counted = counts(some, files, (id) => (id === "a" ? body : undefined));
    expect(counted).toEqual({ files: 3, filesOf: 4, hunks: 5, hunksOf: 9, insertions: 6, deletions: 4, uncounted: false });
    expect(counts(some, files, () => undefined).uncounted).toBe(true);
  });
});
