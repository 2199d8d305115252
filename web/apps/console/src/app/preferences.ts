// What somebody prefers in this browser. Nothing here is needed to work: without storage the defaults hold.
import { useSyncExternalStore } from "react";

const DEFAULTS = {
  /** Single keys do something. */
  keys: true,
  /** A notification of the system when a person is needed. */
  notify: false,
};

/** The name of a preference. */
export type Preference = keyof typeof DEFAULTS;

const listeners = new Set<() => void>();

/** What is preferred. */
export function preference(name: Preference): boolean {
  try {
    const stored = localStorage.getItem(`runyard.${name}`);
    return stored === null ? DEFAULTS[name] : stored === "true";
  } catch {
    return DEFAULTS[name];
  }
}

/** Keeps a preference. */
export function prefer(name: Preference, value: boolean): void {
  try {
    localStorage.setItem(`runyard.${name}`, String(value));
  } catch {
    // A browser without storage keeps the defaults.
  }
  for (const listener of listeners) listener();
}

/** A preference, followed. */
export function usePreference(name: Preference): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => preference(name),
  );
}
