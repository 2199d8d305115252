// What a call wrote, line by line: its streams are recorded in pieces, and a piece may end, or another stream speak, amid a line.
import type { OutputPiece } from "@runyard/react";

/** The pieces as one text. A line that was begun goes on where it was begun; what another stream wrote meanwhile has lines of its own. */
export function outputText(output: readonly OutputPiece[]): string {
  const parts: string[] = [];
  const begun = new Map<string, number>();
  for (const { stream, text, omitted } of output) {
    const at = begun.get(stream);
    const end = at === undefined ? 0 : text.indexOf("\n") + 1 || text.length;
    if (at !== undefined) parts[at] += text.slice(0, end);
    if (end < text.length) begun.set(stream, parts.push(text.slice(end)) - 1);
    // Nothing goes on after a whole line, nor after what was left out.
    if (text.endsWith("\n") || omitted > 0) begun.delete(stream);
  }
  return parts.map((part, index) => (index + 1 < parts.length && !part.endsWith("\n") ? `${part}\n` : part)).join("");
}
