// What the hub itself said of approvals where that is news. A run's stream may be behind it, or be held: until it brings the
// same, this counts.
import { useSyncExternalStore } from "react";
import type { Asked } from "./asked";

/** So many are remembered; the oldest are forgotten first. */
const HEARD_MAX = 200;

let heard: ReadonlyMap<string, Asked> = new Map();
const listeners = new Set<() => void>();

/** Remembers what the hub said. An answer that was overtaken does not open again what was decided. */
export function hear(asked: Asked): void {
  if (asked.state === "open" && (heard.get(asked.id)?.state ?? "open") !== "open") return;
  const all = [...heard].filter(([id]) => id !== asked.id);
  heard = new Map([...all.slice(-(HEARD_MAX - 1)), [asked.id, asked]]);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What the hub said, by approval. */
export function useHeard(): ReadonlyMap<string, Asked> {
  return useSyncExternalStore(subscribe, () => heard);
}
