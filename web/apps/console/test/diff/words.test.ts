import { describe, expect, it } from "vitest";
import type { Line } from "../../src/pages/diff/model";
import { splitRows, unifiedRows } from "../../src/pages/diff/rows";
import { wordDiff } from "../../src/pages/diff/words";

const changed = (pieces: { text: string; changed: boolean }[]) => pieces.filter((piece) => piece.changed).map((piece) => piece.text);
const whole = (pieces: { text: string }[]) => pieces.map((piece) => piece.text).join("");

describe("words that changed", () => {
  it("marks one word in a line", () => {
    const words = wordDiff("attempts_max = 3", "attempts_max = 5");
    expect(words && changed(words.before)).toEqual(["3"]);
    expect(words && changed(words.after)).toEqual(["5"]);
  });

  it("marks words in several places and loses no text", () => {
    const [before, after] = ["run --agent codex and wait for it", "run --profile codex, then wait"];
    const words = wordDiff(before, after);
    expect(words && whole(words.before)).toBe(before);
    expect(words && whole(words.after)).toBe(after);
    expect(words && changed(words.before)).toContain("--agent");
  });

  it("marks nothing where two lines have too little in common", () => {
    expect(wordDiff("return null;", "const everything = somethingElse(entirely)")).toBeNull();
    expect(wordDiff("same", "same")).toBeNull();
  });

  it("handles a very long line without comparing every piece", () => {
    const [long, many] = ["a ".repeat(5000), "b c ".repeat(200)];
    const words = wordDiff(`${long}x ${many}y z`, `${long}v ${many}w z`);
    expect(words && whole(words.after)).toBe(`${long}v ${many}w z`);
    expect(words && changed(words.before)).toEqual([`x ${many}y`]);
  });

  it("splits letters of other scripts as words and keeps hidden characters", () => {
    const words = wordDiff("名称 = 旧\u202e", "名称 = 新\u202e");
    expect(words && changed(words.after)).toEqual(["新"]);
    expect(words && whole(words.after)).toBe("名称 = 新\u202e");
  });
});

describe("rows", () => {
  const lines: Line[] = [
    { kind: "context", old: 1, new: 1, text: "a" },
    { kind: "removed", old: 2, text: "one two" },
    { kind: "removed", old: 3, text: "gone" },
    { kind: "added", new: 2, text: "one three" },
    { kind: "context", old: 4, new: 3, text: "z" },
  ];

  it("stands old and new side by side, line by line", () => {
    const rows = splitRows(lines).map(({ left, right }) => [left?.line.text ?? null, right?.line.text ?? null]);
    expect(rows).toEqual([["a", "a"], ["one two", "one three"], ["gone", null], ["z", "z"]]);
  });

  it("marks words only between lines that replace each other", () => {
    const marked = unifiedRows(lines).map((cell) => cell.pieces !== null);
    expect(marked).toEqual([false, true, false, true, false]);
  });

  it("shows a line of an unknown kind instead of looping or dropping it", () => {
    expect(splitRows([{ kind: "moved", text: "m" }])).toHaveLength(1);
  });
});
