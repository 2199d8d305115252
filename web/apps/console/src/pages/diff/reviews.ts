// The reviews that were begun on this page, by run. The approval panel asks here whether somebody has chosen a part.
import type { Client } from "@runyard/react";
import { isFields } from "../approvals/request";
import type { ReviewComment } from "./comments";
import type { FileChoice } from "./selection";
import { DiffReview, type DiffSource, type Keeper, type Kept } from "./store";

/** So many files are listed at a time. */
const PAGE_FILES = 500;
/** Reviews of so many runs are kept; an older one is read again. */
const REVIEWS_MAX = 20;

const reviews = new Map<string, DiffReview>();

/** The review of a run's changes. */
export function reviewOf(client: Client, run: string): DiffReview {
  const begun = reviews.get(run);
  if (begun) return begun;
  const review = new DiffReview(source(client, run), keeper(run));
  reviews.set(run, review);
  const [oldest] = reviews.keys();
  if (reviews.size > REVIEWS_MAX && oldest !== undefined) reviews.delete(oldest);
  return review;
}

/** Whether somebody chose a part of these changes of a run, on this page or before it was loaded. */
export function chosenInDiff(run: string, digest: string): boolean {
  const state = reviews.get(run)?.get();
  if (state !== undefined && state.diff !== null) return !state.settled && state.choices.size > 0;
  const kept = keeper(run).read();
  return kept !== null && kept.digest === digest && kept.choices.length > 0;
}

function source(client: Client, run: string): DiffSource {
  return {
    async page(after) {
      const envelope = await client.call("run_diff", { id: run, after, limit: PAGE_FILES });
      if (!envelope.ok) return { ok: false, error: envelope.error };
      const { diff, files, next } = envelope.data;
      return { ok: true, diff: { ...diff, applyStatus: String(diff.applyStatus) }, files, next };
    },
    async body(file) {
      const envelope = await client.call("run_diff_file", { id: run, file });
      return envelope.ok ? { ok: true, body: envelope.data } : { ok: false, error: envelope.error };
    },
  };
}

/** Keeps ticks, comments and choices in this browser. Without storage they last as long as the page. */
function keeper(run: string): Keeper {
  const name = `runyard.review.${run}`;
  return {
    read() {
      try {
        return readKept(JSON.parse(localStorage.getItem(name) ?? "null"));
      } catch {
        return null;
      }
    },
    write(kept) {
      try {
        if (kept.viewed.length + kept.comments.length + kept.choices.length === 0) localStorage.removeItem(name);
        else localStorage.setItem(name, JSON.stringify(kept));
      } catch {
        // Full or switched off: nothing else depends on it.
      }
    },
  };
}

/** Reads what was kept, leaving out what is not whole. */
export function readKept(raw: unknown): Kept | null {
  if (!isFields(raw) || typeof raw["digest"] !== "string") return null;
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  return {
    digest: raw["digest"],
    viewed: list(raw["viewed"]).filter((file) => typeof file === "string"),
    comments: list(raw["comments"]).filter(isComment),
    choices: list(raw["choices"]).filter(isChoice),
  };
}

function isChoice(raw: unknown): raw is [string, FileChoice] {
  if (!Array.isArray(raw) || raw.length !== 2 || typeof raw[0] !== "string") return false;
  const choice: unknown = raw[1];
  return choice === "whole" || choice === "none" || (Array.isArray(choice) && choice.every((hunk) => Number.isInteger(hunk)));
}

function isComment(raw: unknown): raw is ReviewComment {
  if (!isFields(raw)) return false;
  const { id, file, path, text, writtenAt, at } = raw;
  const words = [id, file, path, text, writtenAt].every((word) => typeof word === "string");
  return words && (at === undefined || isPlace(at));
}

function isPlace(at: unknown): boolean {
  if (!isFields(at)) return false;
  const { side, line, quote } = at;
  return (side === "new" || side === "old") && typeof line === "number" && typeof quote === "string";
}
