// Light, dark, high contrast, or what the system says. The server sets the attribute from the cookie, so nothing flashes.
import { useSyncExternalStore } from "react";

/** What somebody chose. */
export type Theme = "light" | "dark" | "contrast" | "system";
/** What is shown. */
type Shown = Exclude<Theme, "system">;

const COOKIE = "runyard_theme";
const YEAR_S = 31_536_000;
const listeners = new Set<() => void>();
let chosen: Theme = "system";

function fromCookie(): Theme {
  const value = new RegExp(`(?:^|; )${COOKIE}=(light|dark|contrast)`).exec(document.cookie)?.[1];
  return value === "light" || value === "dark" || value === "contrast" ? value : "system";
}

function shown(): Shown {
  if (chosen !== "system") return chosen;
  if (matchMedia("(prefers-contrast: more)").matches) return "contrast";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function apply(): void {
  document.documentElement.dataset["theme"] = shown();
}

/** Takes the choice from the cookie and follows the system where there is none. */
export function startTheme(): void {
  chosen = fromCookie();
  apply();
  for (const query of ["(prefers-contrast: more)", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", apply);
}

/** Changes the colours and nothing else. */
export function setTheme(next: Theme): void {
  chosen = next;
  document.cookie = `${COOKIE}=${next === "system" ? "" : next}; path=/; max-age=${next === "system" ? 0 : YEAR_S}; samesite=strict`;
  apply();
  for (const listener of listeners) listener();
}

/** The choice. */
export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => chosen,
  );
}
