// Keys. Whoever shows something registers its keys for as long as it is there; the overlay lists exactly those.
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Key } from "../i18n";
import { preference } from "./preferences";

/** Keys that are active now. */
export interface Shortcut {
  /** As in `g r`, `mod+k`, `?`, `shift+a`: steps divided by spaces. */
  keys: string;
  description: Key;
  handler: (event: KeyboardEvent) => void;
  /** Also while a window is open over the page. */
  inDialog: boolean;
}

const SEQUENCE_MS = 1200;
const active = new Set<Shortcut>();
const listeners = new Set<() => void>();
let list: readonly Shortcut[] = [];
let begun: { keys: string; at: number } | undefined;

function changed(): void {
  list = [...active];
  for (const listener of listeners) listener();
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !isTick(target));
}

function isTick(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && (target.type === "checkbox" || target.type === "radio");
}

function named(event: KeyboardEvent): string {
  const mod = event.metaKey || event.ctrlKey ? "mod+" : "";
  const alt = event.altKey ? "alt+" : "";
  // Shift is part of what a character is (`?`), but not of what a named key is.
  const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key)) ? "shift+" : "";
  return `${mod}${alt}${shift}${event.key.toLowerCase()}`;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const step = named(event);
  const single = !step.includes("mod+") && !step.includes("alt+");
  if (single && (typing(event.target) || !preference("keys"))) return;
  const inDialog = document.querySelector("dialog[open]") !== null;
  const sequence = begun && event.timeStamp - begun.at < SEQUENCE_MS ? `${begun.keys} ${step}` : undefined;
  begun = undefined;
  // What was registered last stands on top.
  const usable = [...active].reverse().filter((shortcut) => shortcut.inDialog || !inDialog);
  const hit = usable.find(({ keys }) => keys === sequence) ?? usable.find(({ keys }) => keys === step);
  if (hit) {
    event.preventDefault();
    hit.handler(event);
  } else if (usable.some(({ keys }) => keys.startsWith(`${step} `))) {
    begun = { keys: step, at: event.timeStamp };
  }
}

/** Listens to the keyboard, once for the page. */
export function startShortcuts(): () => void {
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}

/** Makes keys do something while the component is shown. They never fire while somebody types in a field. */
export function useShortcut(
  keys: string,
  description: Key,
  handler: (event: KeyboardEvent) => void,
  { when = true, inDialog = false }: { when?: boolean; inDialog?: boolean } = {},
): void {
  const latest = useRef(handler);
  useEffect(() => {
    latest.current = handler;
  });
  useEffect(() => {
    if (!when) return;
    const shortcut: Shortcut = { keys, description, handler: (event) => latest.current(event), inDialog };
    active.add(shortcut);
    changed();
    return () => {
      active.delete(shortcut);
      changed();
    };
  }, [keys, description, when, inDialog]);
}

/** The keys that work now. */
export function useShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => list,
  );
}
