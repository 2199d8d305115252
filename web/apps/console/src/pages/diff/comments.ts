// What a person says on lines. It stays in this browser until it is sent to the agent with a rejection.
import type { Bodies, FileChange, Hunk, Line } from "./model";

/** A comment that was not sent yet. */
export interface ReviewComment {
  id: string;
  file: string;
  path: string;
  /** Which line, by its number in the new text or, where it is gone, in the old one; none for the file as a whole. */
  at?: { side: "new" | "old"; line: number; quote: string } | undefined;
  text: string;
  writtenAt: string;
}

/** A comment as the hub takes it. */
export interface SentComment {
  file: string;
  line?: number;
  text: string;
}

/** So long a comment may be, as the hub takes it. */
export const COMMENT_CHARS_MAX = 2000;

/** Where a line is, by the side on which it can be named. */
export function placeOf(line: Line): { side: "new" | "old"; line: number; quote: string } | null {
  if (line.new !== undefined) return { side: "new", line: line.new, quote: line.text };
  if (line.old !== undefined) return { side: "old", line: line.old, quote: line.text };
  return null;
}

/** Whether a comment is on this line. */
export function isOn(comment: ReviewComment, line: Line): boolean {
  const place = placeOf(line);
  return comment.at !== undefined && place !== null && place.side === comment.at.side && place.line === comment.at.line;
}

/** The comments as they are sent. A line that is gone has no number in the new text, so its words say which one is meant. */
export function sentComments(comments: readonly ReviewComment[], files: readonly FileChange[], body: Bodies): SentComment[] {
  const known = new Map(files.map((file) => [file.id, file]));
  const sent: SentComment[] = [];
  for (const { file, at, text } of comments) {
    const change = known.get(file);
    if (change === undefined) continue;
    if (at === undefined) sent.push({ file, text });
    else if (at.side === "new" || change.change === "deleted") sent.push({ file, line: at.line, text });
    else {
      const line = lineAfter(body(file)?.hunks ?? [], at.line);
      const words = clip(`On the removed line “${at.quote.trim()}”: ${text}`);
      sent.push({ file, ...(line !== undefined && { line }), text: words });
    }
  }
  return sent;
}

function clip(text: string): string {
  const letters = [...text];
  return letters.length > COMMENT_CHARS_MAX ? `${letters.slice(0, COMMENT_CHARS_MAX - 1).join("")}…` : text;
}

/** The line of the new text that stands where an old line was. */
function lineAfter(hunks: readonly Hunk[], old: number): number | undefined {
  for (const hunk of hunks) {
    const at = hunk.lines.findIndex((line) => line.old === old && line.new === undefined);
    if (at < 0) continue;
    const after = hunk.lines.slice(at).find((line) => line.new !== undefined);
    return after?.new ?? hunk.lines.slice(0, at).findLast((line) => line.new !== undefined)?.new;
  }
  return undefined;
}

/** The comments for changes that were made anew: on the same line where it still says the same, else on the file. */
export function rebaseComments(comments: readonly ReviewComment[], files: readonly FileChange[], body: Bodies): ReviewComment[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return comments.flatMap((comment) => {
    const file = byPath.get(comment.path);
    if (file === undefined) return [];
    const at = comment.at && samePlace(comment.at, body(file.id)?.hunks ?? []);
    return [{ ...comment, file: file.id, at }];
  });
}

function samePlace(at: NonNullable<ReviewComment["at"]>, hunks: readonly Hunk[]): ReviewComment["at"] {
  const all = hunks.flatMap((hunk) => hunk.lines.map(placeOf));
  const places = all.filter((place) => place?.side === at.side && place.quote === at.quote);
  const exact = places.find((place) => place?.line === at.line);
  return exact ?? (places.length === 1 ? (places[0] ?? undefined) : undefined);
}
