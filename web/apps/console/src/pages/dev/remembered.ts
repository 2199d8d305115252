// What was typed and called in this tab, by action. It ends with the tab, and a full store loses it without a word.
import type { DevInput } from "./input";

/** A call of the past. */
export interface PastCall {
  at: string;
  input: unknown;
  timeout: string;
  key: string;
  /** `ok`, or the code of the failure. */
  outcome: string;
  durationMs: number;
}

const HISTORY_MAX = 12;
const KEPT_CHARS_MAX = 100_000;

const place = (what: "input" | "history", action: string): string => `runyard.dev.${what}:${action}`;

function read(key: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function write(key: string, value: unknown): void {
  const text = JSON.stringify(value);
  try {
    if (text.length > KEPT_CHARS_MAX) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // There is no room, or no store: then nothing is remembered.
  }
}

/** What was typed for an action. */
export function rememberedInput(action: string): DevInput | null {
  const found = read(place("input", action));
  const isInput = (value: unknown): value is DevInput => typeof value === "object" && value !== null && "mode" in value && "json" in value;
  return isInput(found) ? found : null;
}

/** Keeps what is typed for an action. */
export function rememberInput(action: string, input: DevInput): void {
  write(place("input", action), input);
}

/** The calls of an action, the latest first. */
export function pastCalls(action: string): PastCall[] {
  const found = read(place("history", action));
  return Array.isArray(found) ? found.slice(0, HISTORY_MAX) : [];
}

/** Keeps a call; one with the same input takes the place of the older one. */
export function rememberCall(action: string, call: PastCall): PastCall[] {
  const given = ({ input, timeout, key }: PastCall) => JSON.stringify([input, timeout, key]);
  const same = (other: PastCall) => given(other) === given(call);
  const calls = [call, ...pastCalls(action).filter((other) => !same(other))].slice(0, HISTORY_MAX);
  write(place("history", action), calls);
  return calls;
}

/** Forgets the calls of an action. */
export function forgetCalls(action: string): PastCall[] {
  sessionStorage.removeItem(place("history", action));
  return [];
}
