// Which part of the changes is chosen. What is sent is exactly what is shown as chosen.
import type { FileBody, FileChange, SelectedFile } from "./model";
import { linesOf } from "./model";

/** What of a file is chosen: all of it, nothing, or some hunks. */
export type FileChoice = "whole" | "none" | readonly number[];
/** The choices that somebody made, by file; the rest is as it is at first. */
export type Choices = ReadonlyMap<string, FileChoice>;
/** A tick, or a dash where a part is chosen. */
export type Tick = boolean | "mixed";

/** What is chosen at first: everything, but for protected files, which count only where they are chosen by name. */
export function initial(file: FileChange): FileChoice {
  return file.protected ? "none" : "whole";
}

/** What of this file is chosen. */
export function choiceOf(choices: Choices, file: FileChange): FileChoice {
  return choices.get(file.id) ?? initial(file);
}

/** Whether a hunk is chosen. */
export function hasHunk(choice: FileChoice, hunk: number): boolean {
  return choice === "whole" || (choice !== "none" && choice.includes(hunk));
}

/** The tick of a file. */
export function tickOf(choice: FileChoice): Tick {
  return choice === "whole" ? true : choice === "none" ? false : "mixed";
}

/** How many hunks of a file are chosen. */
export function hunksChosen(choice: FileChoice, file: FileChange): number {
  return choice === "whole" ? file.hunks : choice === "none" ? 0 : choice.length;
}

/** The tick of several files together. */
export function tickOfAll(choices: Choices, files: readonly FileChange[]): Tick {
  let some = false;
  let all = files.length > 0;
  for (const file of files) {
    const tick = tickOf(choiceOf(choices, file));
    some ||= tick !== false;
    all &&= tick === true;
  }
  return all ? true : some ? "mixed" : false;
}

/** Chooses a file or leaves it out. */
export function withFile(choices: Choices, file: FileChange, chosen: boolean): Choices {
  return changed(choices, file, chosen ? "whole" : "none");
}

/** Chooses many files or leaves them out. Protected ones are left as they are: those are chosen by name only. */
export function withFiles(choices: Choices, files: readonly FileChange[], chosen: boolean): Choices {
  const next = new Map(choices);
  for (const file of files) {
    if (chosen && file.protected) continue;
    put(next, file, chosen ? "whole" : "none");
  }
  return next;
}

/** Accepts a hunk or leaves it out. */
export function withHunk(choices: Choices, file: FileChange, hunk: number, chosen: boolean): Choices {
  const before = choiceOf(choices, file);
  const kept: number[] = [];
  for (let id = 1; id <= file.hunks; id += 1) if (id === hunk ? chosen : hasHunk(before, id)) kept.push(id);
  return changed(choices, file, kept.length === file.hunks ? "whole" : kept.length === 0 ? "none" : kept);
}

function changed(choices: Choices, file: FileChange, choice: FileChoice): Choices {
  const next = new Map(choices);
  put(next, file, choice);
  return next;
}

function put(choices: Map<string, FileChoice>, file: FileChange, choice: FileChoice): void {
  if (choice === initial(file)) choices.delete(file.id);
  else choices.set(file.id, choice);
}

/** The selection as the hub takes it; nothing where it is what the hub applies without one: all files but the protected ones. */
export function selection(choices: Choices, files: readonly FileChange[]): SelectedFile[] | undefined {
  if (files.every((file) => choiceOf(choices, file) === initial(file))) return undefined;
  const chosen: SelectedFile[] = [];
  for (const file of files) {
    const choice = choiceOf(choices, file);
    if (choice === "whole") chosen.push({ file: file.id });
    else if (choice !== "none") chosen.push({ file: file.id, hunks: [...choice] });
  }
  return chosen;
}

/** Reads back what a selection chooses, as for a run that carries a part of another's changes. */
export function choicesOf(selected: readonly SelectedFile[], files: readonly FileChange[]): Choices {
  const named = new Map(selected.map((one) => [one.file, one.hunks]));
  const choices = new Map<string, FileChoice>();
  for (const file of files) {
    const hunks = named.get(file.id);
    const whole = hunks === undefined || hunks.length === file.hunks;
    put(choices, file, !named.has(file.id) ? "none" : whole ? "whole" : hunks);
  }
  return choices;
}

/** How much is chosen, and of how much. */
export interface Counts {
  files: number;
  filesOf: number;
  hunks: number;
  hunksOf: number;
  insertions: number;
  deletions: number;
  /** Whether a file is chosen in part whose hunks are not here to be counted. */
  uncounted: boolean;
}

/** How much is chosen, and of how much. Bodies are needed only for files that are chosen in part. */
export function counts(choices: Choices, files: readonly FileChange[], body: (file: string) => FileBody | undefined): Counts {
  const sum: Counts = { files: 0, filesOf: files.length, hunks: 0, hunksOf: 0, insertions: 0, deletions: 0, uncounted: false };
  for (const file of files) {
    const choice = choiceOf(choices, file);
    sum.hunksOf += file.hunks;
    if (choice === "none") continue;
    sum.files += 1;
    sum.hunks += hunksChosen(choice, file);
    if (choice === "whole") {
      sum.insertions += file.insertions;
      sum.deletions += file.deletions;
      continue;
    }
    const hunks = body(file.id)?.hunks;
    sum.uncounted ||= hunks === undefined;
    for (const hunk of hunks ?? []) {
      if (!choice.includes(hunk.id)) continue;
      sum.insertions += linesOf(hunk, "added");
      sum.deletions += linesOf(hunk, "removed");
    }
  }
  return sum;
}
