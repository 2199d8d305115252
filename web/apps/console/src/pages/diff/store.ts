// One run's changes as they are looked at: the list, the contents as far as they were opened, and what was chosen and said.
// It lives outside of components, so that going to the timeline and back loses nothing.
import { type ReviewComment, rebaseComments } from "./comments";
import type { FileBody, FileChange, SelectedFile } from "./model";
import { type Choices, choicesOf, type FileChoice } from "./selection";
import { pathsToCompare, rebase } from "./stale";
import { directoryOf } from "./tree";

/** All of the changes, in short. */
export interface DiffSummary {
  base: string;
  target: string;
  digest: string;
  summary: string;
  files: number;
  insertions: number;
  deletions: number;
  protected: number;
  problems: number;
  applyStatus: string;
  approvalId?: string | undefined;
  commit?: string | undefined;
}

/** Why something could not be read. */
export interface Failing {
  code: string;
  message: string;
}

/** Some of the files. */
export interface Page {
  ok: true;
  diff: DiffSummary;
  files: FileChange[];
  next: number | undefined;
}

/** What the store reads from. */
export interface DiffSource {
  page(after: number): Promise<Page | { ok: false; error: Failing }>;
  body(file: string): Promise<{ ok: true; body: FileBody } | { ok: false; error: Failing }>;
}

/** Whether the content of a file is here. */
export type BodyState = { kind: "loading" } | { kind: "ready"; body: FileBody } | { kind: "failed"; error: Failing };

/** What is known, chosen and said of the changes. */
export interface DiffState {
  phase: "loading" | "ready" | "failed";
  /** Why the last reading failed. What was there before stays, and may not be what it is by now. */
  error: Failing | null;
  diff: DiffSummary | null;
  files: readonly FileChange[];
  /** Whether all files are listed. */
  complete: boolean;
  bodies: ReadonlyMap<string, BodyState>;
  choices: Choices;
  /** Whether what is chosen was decided elsewhere. */
  settled: boolean;
  comments: readonly ReviewComment[];
  viewed: ReadonlySet<string>;
  /** The comment that is being written. */
  draft: Draft | null;
  /** Says that the changes were made anew, until somebody has read it. */
  anew: { kept: number; reset: number } | null;
}

/** A comment that is being written: a new one, or one that is changed. */
export interface Draft {
  id: string | null;
  file: string;
  path: string;
  at: ReviewComment["at"];
  text: string;
}

/** What is kept in the browser for a run. */
export interface Kept {
  digest: string;
  viewed: string[];
  comments: ReviewComment[];
  /** What was chosen, where it is not everything. */
  choices: [file: string, choice: FileChoice][];
}

/** What keeps ticks, comments and choices. */
export interface Keeper {
  read(): Kept | null;
  write(kept: Kept): void;
}

/** More files than this are not listed; the command line shows them. */
export const FILES_MAX = 50_000;

const EMPTY: DiffState = {
  phase: "loading",
  error: null,
  diff: null,
  files: [],
  complete: false,
  bodies: new Map(),
  choices: new Map(),
  settled: false,
  comments: [],
  viewed: new Set(),
  draft: null,
  anew: null,
};

/** By directory, as the tree shows them: going from one to the next follows what is seen. */
function inOrder(files: readonly FileChange[]): FileChange[] {
  const places = files.map((file) => ({ file, directory: directoryOf(file.path) }));
  const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
  places.sort((one, other) => compare(one.directory, other.directory) || compare(one.file.path, other.file.path));
  return places.map(({ file }) => file);
}

function bodyIn(bodies: ReadonlyMap<string, BodyState>): (file: string) => FileBody | undefined {
  return (file) => {
    const state = bodies.get(file);
    return state?.kind === "ready" ? state.body : undefined;
  };
}

/** A run's changes under review. */
export class DiffReview {
  #state: DiffState = EMPTY;
  #loading = 0;
  #reading: Promise<void> | null = null;
  /** Whether what was kept is here: nothing is written before that, since it would be lost. */
  #restored = false;
  readonly #listeners = new Set<() => void>();
  readonly #source: DiffSource;
  readonly #keeper: Keeper;

  constructor(source: DiffSource, keeper: Keeper) {
    this.#source = source;
    this.#keeper = keeper;
  }

  get = (): DiffState => this.#state;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** The content of a file, where it is here. */
  body = (file: string): FileBody | undefined => bodyIn(this.#state.bodies)(file);

  /** Reads the list, unless what is here has this digest. */
  async open(digest: string): Promise<void> {
    // What is read at first may turn out to be of this digest, or to have been read before these changes were made.
    if (this.#state.phase === "loading" && this.#reading !== null) await this.#reading;
    if (this.#state.diff?.digest !== digest) await this.load();
  }

  /** Reads the list anew. Choices and comments hold where their hunk is still the same. */
  load(): Promise<void> {
    this.#reading = this.#load();
    return this.#reading;
  }

  async #load(): Promise<void> {
    const ticket = (this.#loading += 1);
    const before = this.#state;
    const files: FileChange[] = [];
    let diff: DiffSummary | null = null;
    let after: number | undefined = 0;
    while (after !== undefined && files.length < FILES_MAX) {
      const page = await this.#source.page(after);
      if (ticket !== this.#loading) return;
      if (!page.ok) {
        this.#set({ ...this.#state, phase: this.#state.diff === null ? "failed" : "ready", error: page.error });
        return;
      }
      // Changed between two pages: what was listed so far is of something else.
      if (diff !== null && diff.digest !== page.diff.digest) return this.load();
      diff = page.diff;
      files.push(...page.files);
      after = page.next;
      // What is chosen stays in view until all of the new is here to compare.
      if (before.diff === null || before.diff.digest === diff.digest) {
        this.#set({ ...this.#state, phase: "ready", error: null, diff, files: inOrder(files), complete: after === undefined });
      }
    }
    if (diff === null) return;
    if (before.diff !== null && before.diff.digest !== diff.digest) await this.#anew(before, diff, inOrder(files), ticket);
    if (!this.#restored && ticket === this.#loading) this.#restore(diff.digest, files);
  }

  /** Adds what was kept to what was said and chosen while the list was still read. */
  #restore(digest: string, files: readonly FileChange[]): void {
    this.#restored = true;
    const kept = this.#keeper.read();
    if (kept !== null) {
      const { comments, choices, viewed, settled } = this.#state;
      const same = kept.digest === digest;
      const said = same ? kept.comments : rebaseComments(kept.comments, files, () => undefined);
      // A choice is of exactly these changes: of others nothing is chosen yet.
      const chosen = same && !settled ? kept.choices : [];
      this.#set({
        ...this.#state,
        comments: [...said, ...comments],
        choices: new Map([...chosen, ...choices]),
        viewed: new Set([...(same ? kept.viewed : []), ...viewed]),
      });
    }
    this.#keep();
  }

  /** Other changes than those that were looked at. */
  async #anew(before: DiffState, diff: DiffSummary, files: readonly FileChange[], ticket: number): Promise<void> {
    const commented = before.comments.map((comment) => comment.path);
    const compared = new Set([...pathsToCompare(before.files, before.choices), ...commented]);
    const bodies = new Map<string, BodyState>();
    for (const file of files) {
      if (!compared.has(file.path)) continue;
      const answer = await this.#source.body(file.id);
      if (ticket !== this.#loading) return;
      if (answer.ok) bodies.set(file.id, { kind: "ready", body: answer.body });
    }
    const body = bodyIn(bodies);
    const looked = { files: before.files, body: bodyIn(before.bodies) };
    const { choices, kept, reset } = rebase(looked, before.choices, { files, body });
    const comments = rebaseComments(before.comments, files, body);
    const complete = files.length >= diff.files;
    this.#set({ ...EMPTY, phase: "ready", diff, files, complete, bodies, choices, comments, anew: { kept, reset } });
    this.#keep();
  }

  /** Reads the content of a file, once. */
  async openFile(file: string): Promise<void> {
    if (this.#state.bodies.has(file)) return;
    const digest = this.#state.diff?.digest;
    this.#setBody(file, { kind: "loading" });
    const answer = await this.#source.body(file);
    if (this.#state.diff?.digest !== digest) return;
    this.#setBody(file, answer.ok ? { kind: "ready", body: answer.body } : { kind: "failed", error: answer.error });
  }

  /** Forgets that a file could not be read, so that it is tried again. */
  async reopenFile(file: string): Promise<void> {
    const bodies = new Map(this.#state.bodies);
    bodies.delete(file);
    this.#set({ ...this.#state, bodies });
    await this.openFile(file);
  }

  choose(change: (choices: Choices) => Choices): void {
    this.#set({ ...this.#state, choices: change(this.#state.choices), settled: false });
    this.#keep();
  }

  /** Shows what was chosen elsewhere and is not to be changed here; without a selection it is everything. */
  settle(selected: readonly SelectedFile[] | undefined): void {
    const choices: Choices = selected === undefined ? new Map() : choicesOf(selected, this.#state.files);
    this.#set({ ...this.#state, choices, settled: true });
  }

  setViewed(file: string, viewed: boolean): void {
    const next = new Set(this.#state.viewed);
    if (viewed) next.add(file);
    else next.delete(file);
    this.#set({ ...this.#state, viewed: next });
    this.#keep();
  }

  setComments(change: (comments: readonly ReviewComment[]) => readonly ReviewComment[]): void {
    this.#set({ ...this.#state, comments: change(this.#state.comments) });
    this.#keep();
  }

  /** Begins a comment. What was being written is kept as it is: nothing that was typed is lost. */
  beginComment(draft: Draft): void {
    this.keepComment();
    this.#set({ ...this.#state, draft });
  }

  typeComment(text: string): void {
    const { draft } = this.#state;
    if (draft) this.#set({ ...this.#state, draft: { ...draft, text } });
  }

  dropComment(): void {
    this.#set({ ...this.#state, draft: null });
  }

  /** Keeps the comment that is being written, where it says something. */
  keepComment(): void {
    const { draft, comments } = this.#state;
    if (draft === null) return;
    const text = draft.text.trim();
    this.#set({ ...this.#state, draft: null });
    if (text === "") return;
    const { id, file, path, at } = draft;
    const kept = { file, path, at, text, writtenAt: new Date().toISOString() };
    if (id !== null) this.setComments((all) => all.map((one) => (one.id === id ? { ...kept, id } : one)));
    else this.setComments((all) => [...all, { ...kept, id: `c${comments.length + 1}-${Date.now().toString(36)}` }]);
  }

  removeComment(id: string): void {
    this.setComments((all) => all.filter((one) => one.id !== id));
  }

  /** Says that what changed was read anew has been read. */
  read(): void {
    this.#set({ ...this.#state, anew: null });
  }

  #keep(): void {
    const { diff, viewed, comments, choices, settled } = this.#state;
    const chosen = settled ? [] : [...choices];
    if (diff && this.#restored) this.#keeper.write({ digest: diff.digest, viewed: [...viewed], comments: [...comments], choices: chosen });
  }

  #setBody(file: string, body: BodyState): void {
    this.#set({ ...this.#state, bodies: new Map(this.#state.bodies).set(file, body) });
  }

  #set(state: DiffState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
