// What is said to those who do not see the page: a change of state, never mere progress.
import { useSyncExternalStore } from "react";

let said = "";
const listeners = new Set<() => void>();

/** Says something once, politely. */
export function announce(text: string): void {
  // The same words again are only read out when the text differs.
  said = said === text ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

/** The last thing that was said. */
export function useAnnouncement(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => said,
  );
}
