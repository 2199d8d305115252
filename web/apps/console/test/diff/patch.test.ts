import { describe, expect, it } from "vitest";
import { aboutFile } from "../../src/pages/diff/about";
import { applyLabel, commentsLabel } from "../../src/pages/diff/bar";
import { hunkHead, hunkPlaces } from "../../src/pages/diff/model";
import { parsePatch, patchName, type PatchFile } from "../../src/pages/diff/patch";
import { readKept } from "../../src/pages/diff/reviews";
import { filtered, treeRows } from "../../src/pages/diff/tree";
import { walk } from "../../src/pages/diff/walk";
import { file } from "./files";

const hunks = ({ parts }: PatchFile) => parts.flatMap((part) => (part.kind === "hunk" ? [part.hunk] : []));
const notes = ({ parts }: PatchFile) => parts.flatMap((part) => (part.kind === "note" ? [part.text] : []));

const PATCH = `diff --git a/f b/f
old mode 100644
new mode 100755
index 1..2
--- a/f
+++ b/f
@@ -1,3 +1,3 @@ fn main
 a
--- dashes
+++ pluses
 d
@@ -10 +10,2 @@
 x
+y
\\ No newline at end of file
diff --git a/g b/g
--- /dev/null
+++ b/g
@@ -0,0 +1 @@
+new
`;

describe("a patch as text", () => {
  it("is read in files and hunks, and lines that look like heads stay lines", () => {
    const files = parsePatch(PATCH);
    expect(files.map((one) => [patchName(one), hunks(one).length])).toEqual([["f", 2], ["/dev/null → g", 1]]);
    expect(files.flatMap(notes)).toEqual([
      ...["diff --git a/f b/f", "old mode 100644", "new mode 100755", "index 1..2", "--- a/f", "+++ b/f", "\\ No newline at end of file"],
      ...["diff --git a/g b/g", "--- /dev/null", "+++ b/g"],
    ]);
    const [first, second] = files.flatMap(hunks);
    expect(first?.lines.map((line) => `${line.kind} ${line.old ?? ""} ${line.new ?? ""} ${line.text}`)).toEqual(["context 1 1 a", "removed 2  -- dashes", "added  2 ++ pluses", "context 3 3 d"]);
    expect(second?.lines).toHaveLength(2);
  });

  it("c12 names a file by what it was called and by what it is called", () => {
    const moved = (lines: string) => parsePatch(lines).map(patchName);
    expect(moved("--- a/from\n+++ b/to\n@@ -1 +1 @@\n-a\n+b\n")).toEqual(["from → to"]);
    expect(moved("diff --git a/x b/y\nrename from x\nrename to y\n")).toEqual(["x → y"]);
    expect(moved("--- a/a\t/../.ssh/id\n+++ b/a\t/../.ssh/id\n@@ -1 +1 @@\n-a\n+b\n"), "a tab cuts nothing off").toEqual(["a⟨U+0009⟩/../.ssh/id"]);
    expect(moved("--- a/two words\t\n+++ b/two words\t\n@@ -1 +1 @@\n-a\n+b\n")).toEqual(["two words"]);
  });

  it("c12 leaves no line out, wherever it stands", () => {
    const odd = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\nnot a line of a hunk\n+b\n\nafter it\n";
    const [file] = parsePatch(odd);
    if (file === undefined) throw new Error("it is read");
    expect(notes(file)).toEqual(["--- a/f", "+++ b/f", "not a line of a hunk", "after it"]);
    const shown = hunks(file).flatMap((hunk) => hunk.lines.map((line) => line.text));
    expect(shown).toEqual(["a", "b", ""]);
  });

  it("that is none gives nothing that could be mistaken for one", () => {
    expect(parsePatch("*** Begin Patch\n*** Update File: a\n").every((one) => hunks(one).length === 0 && patchName(one) === "")).toBe(true);
    expect(parsePatch("")).toEqual([]);
  });

  it("names where its hunks are", () => {
    expect(hunkPlaces(PATCH)).toEqual(["fn main", "", ""]);
    const [first] = parsePatch(PATCH).flatMap(hunks);
    expect(first && hunkHead(first)).toBe("@@ −1,3 +1,3 @@");
  });
});

describe("going from hunk to hunk", () => {
  const files = [file("a", { hunks: 2 }), file("bin", { hunks: 0 }), file("c", { hunks: 1 })];
  it("stops at every hunk, and once at a file without", () => {
    const seen: string[] = [];
    let at = walk(files, null, 1);
    for (let step = 0; step < 6 && at; step += 1) {
      seen.push(`${at.file}.${at.hunk}`);
      at = walk(files, at, 1);
    }
    expect(seen).toEqual(["0.1", "0.2", "1.0", "2.1", "2.1", "2.1"]);
    expect(walk(files, { file: 2, hunk: 1 }, -1)).toEqual({ file: 1, hunk: 0 });
    expect(walk(files, { file: 1, hunk: 0 }, -1)).toEqual({ file: 0, hunk: 2 });
    expect(walk([], null, 1)).toBeNull();
  });
});

describe("the tree", () => {
  const files = ["README.md", "docs/a.md", "docs/b.md", "src/deep/c.ts"].map((path) => file(path, { path }));
  it("has each directory once, with its files below", () => {
    const rows = treeRows(files, new Set()).map((row) => (row.kind === "directory" ? `${row.path}/` : row.name));
    expect(rows).toEqual(["README.md", "docs/", "a.md", "b.md", "src/deep/", "c.ts"]);
    expect(treeRows(files, new Set(["docs"]))).toHaveLength(4);
  });
  it("is filtered by the new and the old path", () => {
    expect(filtered([file("x", { path: "new.md", oldPath: "docs/old.md" })], "DOCS/O")).toHaveLength(1);
    expect(filtered(files, "zzz")).toEqual([]);
  });
});

describe("words of the diff", () => {
  it("say what happened besides lines", () => {
    expect(aboutFile(file("a", { change: "renamed", oldPath: "b" }))).toEqual(["renamed", "from b"]);
    expect(aboutFile(file("a", { oldMode: "100644", newMode: "100755" }))).toEqual(["made executable"]);
    expect(aboutFile(file("a", { change: "retyped", oldMode: "100644", newMode: "120000" }))).toEqual(["changed its kind", "symbolic link", "mode 100644 → 120000"]);
    expect(aboutFile(file("a", { change: "strange" }))).toEqual(["strange"]);
  });
  it("count what is applied, and name where to", () => {
    expect(applyLabel({ kind: "files" }, { files: 2, hunks: 4 }).text).toBe("Apply 2 files (4 hunks)");
    expect(applyLabel({ kind: "files" }, { files: 1, hunks: 0 }).text).toBe("Apply 1 file");
    expect(applyLabel({ kind: "branch", name: "x" }, { files: 1, hunks: 1 })).toEqual({ text: "Commit 1 file (1 hunk) to branch:", code: "x" });
    expect([commentsLabel(1), commentsLabel(2)]).toEqual(["Send 1 comment to the agent", "Send 2 comments to the agent"]);
  });
});

describe("what a browser kept", () => {
  it("is read as far as it is whole", () => {
    const whole = { id: "1", file: "a", path: "a", text: "x", writtenAt: "t", at: { side: "new", line: 1, quote: "q" } };
    expect(readKept({ digest: "d", viewed: ["a", 1], comments: [whole, { id: 2 }, { ...whole, at: { side: "up" } }] })).toEqual({ digest: "d", viewed: ["a"], comments: [whole], choices: [] });
    expect(readKept("nonsense")).toBeNull();
    expect(readKept({ digest: "d" })).toEqual({ digest: "d", viewed: [], comments: [], choices: [] });
    const choices = [["a", "none"], ["b", [1, 2]], ["c", "some"], ["d", ["1"]], "e", ["f"]];
    expect(readKept({ digest: "d", choices })?.choices).toEqual([["a", "none"], ["b", [1, 2]]]);
  });
});
