import { describe, expect, it } from "vitest";
import { rebaseComments, sentComments, type ReviewComment } from "../../src/pages/diff/comments";
import type { FileBody, FileChange, Hunk } from "../../src/pages/diff/model";
import { whyNotApply } from "../../src/pages/diff/bar";
import { choiceOf, counts, withFile, withHunk, type Choices } from "../../src/pages/diff/selection";
import { rebase } from "../../src/pages/diff/stale";
import { DiffReview, type DiffSource, type Kept } from "../../src/pages/diff/store";
import { file } from "./files";

const hunk = (id: number, ...added: string[]): Hunk => ({ id, oldStart: id * 10, newStart: id * 10, lines: added.map((text, at) => ({ kind: "added", new: id * 10 + at, text })) });
const body = (...hunks: Hunk[]): FileBody => ({ hunks, patch: "", omitted: 0 });
const none: Choices = new Map();

describe("changes that were made anew", () => {
  const before = { files: [file("a")], body: () => body(hunk(1, "one"), hunk(2, "two"), hunk(3, "three")) };

  it("keeps the choice of a hunk that says the same, wherever it stands now", () => {
    const choices = withHunk(none, before.files[0]!, 2, false);
    const now = file("x9", { path: "src/a.ts", hunks: 2 });
    const after = { files: [now], body: () => body(hunk(1, "two"), hunk(2, "three")) };
    const { choices: next, kept, reset } = rebase(before, choices, after);
    expect(choiceOf(next, now)).toEqual([2]);
    expect([kept, reset]).toEqual([2, 0]);
  });

  it("does not take a changed hunk for one that was accepted", () => {
    const choices = withHunk(none, before.files[0]!, 2, false);
    const after = { files: [file("a")], body: () => body(hunk(1, "ONE"), hunk(2, "two"), hunk(3, "three")) };
    const { choices: next, reset } = rebase(before, choices, after);
    expect(choiceOf(next, after.files[0]!)).toEqual([3]);
    expect(reset).toBe(1);
  });

  it("keeps left out what was left out", () => {
    const choices = withFile(none, before.files[0]!, false);
    const after = { files: [file("a", { hunks: 9 })], body: () => undefined };
    expect(choiceOf(rebase(before, choices, after).choices, after.files[0]!)).toBe("none");
  });

  it("asks for a protected file to be chosen again unless it is the same", () => {
    const guarded = { files: [file("p", { protected: true, hunks: 1 })], body: () => body(hunk(1, "rule")) };
    const choices = withFile(none, guarded.files[0]!, true);
    const same = rebase(guarded, choices, guarded);
    expect(choiceOf(same.choices, guarded.files[0]!)).toBe("whole");
    const other = { files: guarded.files, body: () => body(hunk(1, "another rule")) };
    expect(choiceOf(rebase(guarded, choices, other).choices, guarded.files[0]!)).toBe("none");
  });

  it("sets back what cannot be compared", () => {
    const choices = withHunk(none, before.files[0]!, 2, false);
    const { choices: next, reset } = rebase(before, choices, { files: [file("a")], body: () => undefined });
    expect(choiceOf(next, file("a"))).toBe("none");
    expect(reset).toBe(1);
  });
});

describe("comments", () => {
  const comment = (more: Partial<ReviewComment> = {}): ReviewComment => ({ id: "1", file: "a", path: "src/a.ts", at: { side: "new", line: 20, quote: "two" }, text: "Why?", writtenAt: "2026-01-01T00:00:00Z", ...more });

  it("go with the line of the new text", () => {
    expect(sentComments([comment(), comment({ at: undefined })], [file("a")], () => undefined)).toEqual([{ file: "a", line: 20, text: "Why?" }, { file: "a", text: "Why?" }]);
  });

  it("on a removed line say which line is meant, and stand where it was", () => {
    const removed: Hunk = { id: 1, oldStart: 5, newStart: 5, lines: [{ kind: "context", old: 5, new: 5, text: "c" }, { kind: "removed", old: 6, text: " gone " }, { kind: "context", old: 7, new: 6, text: "d" }] };
    const sent = sentComments([comment({ at: { side: "old", line: 6, quote: " gone " } })], [file("a")], () => body(removed));
    expect(sent).toEqual([{ file: "a", line: 6, text: "On the removed line “gone”: Why?" }]);
  });

  it("on a file that is gone go with the line of the old text", () => {
    const sent = sentComments([comment({ at: { side: "old", line: 6, quote: "x" } })], [file("a", { change: "deleted" })], () => undefined);
    expect(sent).toEqual([{ file: "a", line: 6, text: "Why?" }]);
  });

  it("are not sent about files that are not in the diff any more", () => {
    expect(sentComments([comment({ file: "zz" })], [file("a")], () => undefined)).toEqual([]);
  });

  it("move with their line, and stay on the file where the line is gone", () => {
    const now = file("n", { path: "src/a.ts" });
    const moved = rebaseComments([comment()], [now], () => body(hunk(3, "zero", "two")));
    expect(moved[0]).toMatchObject({ file: "n", at: { side: "new", line: 31 } });
    expect(rebaseComments([comment()], [now], () => body(hunk(3, "other")))[0]).toMatchObject({ file: "n", at: undefined });
    expect(rebaseComments([comment()], [file("b")], () => undefined)).toEqual([]);
  });
});

describe("a review", () => {
  const summary = (digest: string, files: number) => ({ base: "b", target: "t", digest, summary: "", files, insertions: 0, deletions: 0, protected: 0, problems: 0, applyStatus: "proposed" });
  function source(state: { digest: string; files: FileChange[]; body: FileBody }, page = 2): DiffSource {
    return {
      page: async (after) => ({ ok: true, diff: summary(state.digest, state.files.length), files: state.files.slice(after, after + page), next: after + page < state.files.length ? after + page : undefined }),
      body: async () => ({ ok: true, body: state.body }),
    };
  }
  function keeper(kept: { now: Kept | null } = { now: null }) {
    return { read: () => kept.now, write: (next: Kept) => void (kept.now = next) };
  }

  it("lists all pages, and says until then that it is not complete", async () => {
    const review = new DiffReview(source({ digest: "d1", files: [file("a"), file("b"), file("c")], body: body() }), keeper());
    const seen: boolean[] = [];
    review.subscribe(() => seen.push(review.get().complete));
    await review.open("d1");
    expect(review.get().files.map((one) => one.id)).toEqual(["a", "b", "c"]);
    expect(seen).toEqual([false, true]);
  });

  it("keeps the choices of unchanged hunks when the digest is another one, and says so", async () => {
    const state = { digest: "d1", files: [file("a", { hunks: 2 })], body: body(hunk(1, "one"), hunk(2, "two")) };
    const review = new DiffReview(source(state), keeper());
    await review.open("d1");
    await review.openFile("a");
    review.choose((choices) => withHunk(choices, state.files[0]!, 1, false));
    Object.assign(state, { digest: "d2", body: body(hunk(1, "one"), hunk(2, "changed")) });
    await review.open("d2");
    expect(review.get().diff?.digest).toBe("d2");
    expect(review.get().anew).toEqual({ kept: 1, reset: 1 });
    expect(choiceOf(review.get().choices, state.files[0]!)).toBe("none");
  });

  it("remembers what was chosen through a reload, for this digest only", async () => {
    const kept: { now: Kept | null } = { now: null };
    const state = { digest: "d1", files: [file("a", { hunks: 2 })], body: body(hunk(1, "one"), hunk(2, "two")) };
    const first = new DiffReview(source(state), keeper(kept));
    await first.open("d1");
    first.choose((choices) => withHunk(choices, state.files[0]!, 2, false));
    const second = new DiffReview(source(state), keeper(kept));
    await second.open("d1");
    expect(choiceOf(second.get().choices, state.files[0]!)).toEqual([1]);
    const third = new DiffReview(source({ ...state, digest: "d2" }), keeper(kept));
    await third.open("d2");
    expect(choiceOf(third.get().choices, state.files[0]!)).toBe("whole");
  });

  it("remembers ticks of what was viewed for this digest only", async () => {
    const kept: { now: Kept | null } = { now: null };
    const state = { digest: "d1", files: [file("a")], body: body() };
    const first = new DiffReview(source(state), keeper(kept));
    await first.open("d1");
    first.setViewed("a", true);
    const second = new DiffReview(source(state), keeper(kept));
    await second.open("d1");
    expect(second.get().viewed.has("a")).toBe(true);
    const third = new DiffReview(source({ ...state, digest: "d2" }), keeper(kept));
    await third.open("d2");
    expect(third.get().viewed.has("a")).toBe(false);
  });

  it("forgets nothing that was kept where the list could not be read to its end at first", async () => {
    const comment: ReviewComment = { id: "1", file: "a", path: "src/a.ts", at: undefined, text: "Why?", writtenAt: "2026-01-01T00:00:00Z" };
    const kept: { now: Kept | null } = { now: { digest: "d1", viewed: ["a"], comments: [comment], choices: [["a", [1]]] } };
    const base = source({ digest: "d1", files: [file("a"), file("b"), file("c")], body: body() });
    let fails = true;
    const error = { code: "INTERNAL_ERROR", message: "no" };
    const review = new DiffReview({ ...base, page: async (after) => (fails && after > 0 ? { ok: false, error } : base.page(after)) }, keeper(kept));
    await review.open("d1");
    review.setViewed("b", true);
    fails = false;
    await review.load();
    expect(review.get().comments).toEqual([comment]);
    expect(choiceOf(review.get().choices, file("a"))).toEqual([1]);
    expect(kept.now).toEqual({ digest: "d1", viewed: ["a", "b"], comments: [comment], choices: [["a", [1]]] });
  });

  it("reads again what was made anew while it was read at first", async () => {
    const state = { digest: "d1", files: [file("a")], body: body() };
    const base = source(state);
    let answer = (): void => undefined;
    let pages = 0;
    const page: DiffSource["page"] = async (after) => {
      pages += 1;
      const read = await base.page(after);
      if (pages === 1) await new Promise<void>((resolve) => (answer = resolve));
      return read;
    };
    const review = new DiffReview({ ...base, page }, keeper());
    const first = review.open("d1");
    await new Promise((resolve) => setTimeout(resolve, 0));
    state.digest = "d2";
    const again = review.open("d2");
    answer();
    await Promise.all([first, again]);
    expect(review.get().diff?.digest).toBe("d2");
  });

  it("reads at first only once where nothing changed meanwhile", async () => {
    let pages = 0;
    const base = source({ digest: "d1", files: [file("a")], body: body() });
    const review = new DiffReview({ ...base, page: async (after) => ((pages += 1), base.page(after)) }, keeper());
    await Promise.all([review.open("d1"), review.open("d1")]);
    expect(pages).toBe(1);
  });

  it("says why what changed could not be read, beside what was read before, until it is read", async () => {
    const state = { digest: "d1", files: [file("a")], body: body() };
    const base = source(state);
    let fails = false;
    const error = { code: "INTERNAL_ERROR", message: "no" };
    const review = new DiffReview({ ...base, page: async (after) => (fails ? { ok: false, error } : base.page(after)) }, keeper());
    await review.open("d1");
    [state.digest, fails] = ["d2", true];
    await review.open("d2");
    expect(review.get()).toMatchObject({ phase: "ready", error, diff: { digest: "d1" } });
    const counted = counts(review.get().choices, review.get().files, review.body);
    expect(whyNotApply(review.get(), counted)).toBe("The changes could not be read again: they may be others by now.");
    fails = false;
    await review.load();
    expect(review.get()).toMatchObject({ error: null, diff: { digest: "d2" } });
    expect(whyNotApply(review.get(), counted)).toBeUndefined();
  });

  it("reads a file once, however often it comes into view", async () => {
    let reads = 0;
    const base = source({ digest: "d1", files: [file("a")], body: body() });
    const review = new DiffReview({ ...base, body: async (id) => ((reads += 1), base.body(id)) }, keeper());
    await review.open("d1");
    await Promise.all([review.openFile("a"), review.openFile("a")]);
    expect(reads).toBe(1);
  });
});
