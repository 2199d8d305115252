// Which window stands over the page: the palette, the list of keys, or none.
import { useSyncExternalStore } from "react";

/** A window over the page. */
export type Overlay = "palette" | "keys" | null;

let open: Overlay = null;
const listeners = new Set<() => void>();

/** Opens a window over the page, or closes it. */
export function overlay(next: Overlay): void {
  open = next;
  for (const listener of listeners) listener();
}

/** The window that is open. */
export function useOverlay(): Overlay {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => open,
  );
}
