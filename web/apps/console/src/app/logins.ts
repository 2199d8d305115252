// How often somebody logged in again while the page was open: what failed for want of a session is of the past after that.
import { useSyncExternalStore } from "react";

let logins = 0;
const listeners = new Set<() => void>();
/** With which login each failure came up. */
const failedIn = new WeakMap<object, number>();

/** Says that there is a session again. */
export function loggedInAgain(): void {
  logins += 1;
  for (const listener of listeners) listener();
}

/** Whether a failure only said that there was no session, and there is one since. */
export function useOutlived(error: { code: string }): boolean {
  const now = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => logins,
  );
  if (!failedIn.has(error)) failedIn.set(error, now);
  return error.code === "AUTHENTICATION_ERROR" && failedIn.get(error) !== now;
}
