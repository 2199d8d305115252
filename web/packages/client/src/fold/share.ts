// Keeps a long text once: what came in pieces and then as a whole is held by the whole alone.

import type { RunEvent } from "../view.js";
import { isRecord } from "../envelope.js";

/** Shorter pieces cost less by themselves than as parts of something else. */
const SHARED_CHARS_MIN = 64;

/** Makes the pieces of a message parts of its whole text, where they are; what they say stays the same. */
export function shareText(events: readonly RunEvent[], whole: string): void {
  let begin = 0;
  for (const { type, payload } of events) {
    if (type !== "run.message.delta" || !isRecord(payload) || typeof payload["text"] !== "string") continue;
    const { length } = payload["text"];
    const part = whole.slice(begin, begin + length);
    if (part !== payload["text"]) return;
    if (length >= SHARED_CHARS_MIN) payload["text"] = part;
    begin += length;
  }
}
