// The changes were made anew while somebody chose: what is still the same keeps its choice, the rest is looked at again.
import type { FileBody, FileChange } from "./model";
import { fingerprint } from "./model";
import { type Choices, type FileChoice, choiceOf, hasHunk, initial } from "./selection";

/** Changes, with the contents that were looked at. */
export interface Looked {
  files: readonly FileChange[];
  body: (file: string) => FileBody | undefined;
}

/** Choices that were brought to new changes. */
export interface Rebased {
  choices: Choices;
  /** How many choices hold still. */
  kept: number;
  /** How many were set back, since what they were about is not the same any more. */
  reset: number;
}

/** The files of the old changes of which the new content is needed to tell whether a choice still holds. */
export function pathsToCompare(before: readonly FileChange[], choices: Choices): string[] {
  return before.filter((file) => choices.has(file.id) && choices.get(file.id) !== "none").map((file) => file.path);
}

/** The choices for the new changes. Nothing that was left out becomes chosen, and no changed hunk passes for an accepted one. */
export function rebase(before: Looked, choices: Choices, after: Looked): Rebased {
  const byPath = new Map(after.files.map((file) => [file.path, file]));
  const next = new Map<string, FileChoice>();
  let [kept, reset] = [0, 0];
  for (const file of before.files) {
    if (!choices.has(file.id)) continue;
    const now = byPath.get(file.path);
    if (now === undefined) {
      reset += 1;
      continue;
    }
    const choice = choiceOf(choices, file);
    const carried = carry(choice, before.body(file.id), now, after.body(now.id));
    kept += carried.kept;
    reset += carried.reset;
    if (carried.choice !== initial(now)) next.set(now.id, carried.choice);
  }
  return { choices: next, kept, reset };
}

type Carried = { choice: FileChoice; kept: number; reset: number };

function carry(choice: FileChoice, before: FileBody | undefined, now: FileChange, after: FileBody | undefined): Carried {
  if (choice === "none") return { choice: "none", kept: 1, reset: 0 };
  if (before === undefined || after === undefined) return { choice: "none", kept: 0, reset: 1 };
  const known = new Map(before.hunks.map((hunk) => [fingerprint(hunk), hunk.id]));
  const chosen: number[] = [];
  let [kept, reset] = [0, 0];
  for (const hunk of after.hunks) {
    const was = known.get(fingerprint(hunk));
    if (was === undefined) reset += 1;
    else {
      kept += 1;
      if (hasHunk(choice, was)) chosen.push(hunk.id);
    }
  }
  // A part that is not shown was not compared, so the whole is not chosen for it.
  const whole = chosen.length === now.hunks && after.omitted === 0;
  return { choice: whole ? "whole" : chosen.length === 0 ? "none" : chosen, kept, reset };
}
