// Words in two languages. A key that one of them lacks does not compile; payload, ids and codes are never translated.
import { useSyncExternalStore } from "react";
import type { en } from "./en";

/** Every key with its English text. Placeholders are `{name}`. */
export type Dictionary = typeof en;
/** Another language has the same keys, each with some text. */
export type Translation<T> = { [K in keyof T]: T[K] extends string ? string : Translation<T[K]> };
type Keys<T, P extends string = ""> = { [K in keyof T & string]: T[K] extends string ? `${P}${K}` : Keys<T[K], `${P}${K}.`> }[keyof T & string];
/** A text's place, as in `runs.title`. */
export type Key = Keys<Dictionary>;
/** The languages. */
export type Language = "en" | "zh";
/** What is put in for placeholders. */
export type Values = Record<string, string | number>;

// Each language is a file of its own: nobody loads the one that is not spoken.
const LOAD: Record<Language, () => Promise<Translation<Dictionary>>> = {
  en: async () => (await import("./en")).en,
  zh: async () => (await import("./zh")).zh,
};

const listeners = new Set<() => void>();
let language = servedLanguage();
let words: ReadonlyMap<string, string> = flat(await LOAD[language]());

/** The language that the page was served in: the server chose it from the cookie or from what the browser asks for. */
function servedLanguage(): Language {
  return typeof document !== "undefined" && document.documentElement.lang.startsWith("zh") ? "zh" : "en";
}

/** The language that is spoken. */
export function currentLanguage(): Language {
  return language;
}

/** Switches the words. Nothing else is touched: what is open, chosen or typed stays. */
export async function setLanguage(next: Language): Promise<void> {
  words = flat(await LOAD[next]());
  language = next;
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  document.cookie = `runyard_language=${next}; path=/; max-age=31536000; samesite=strict`;
  for (const listener of listeners) listener();
}

/** The text of a key. */
export function t(key: Key, values: Values = {}): string {
  return filled(words.get(key) ?? key, values);
}

function filled(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** As `t`, for a key that is made of data (a state, a code). Gives nothing where there is no such key. */
export function maybe(key: string, values: Values = {}): string | undefined {
  const text = words.get(key);
  return text === undefined ? undefined : filled(text, values);
}

/** Every text by its whole key. Names may themselves hold dots, as codes do. */
export function flat(from: object, prefix = ""): Map<string, string> {
  const all = new Map<string, string>();
  for (const [name, inside] of Object.entries(from)) {
    if (typeof inside === "string") all.set(`${prefix}${name}`, inside);
    else if (typeof inside === "object") for (const [key, text] of flat(inside, `${prefix}${name}.`)) all.set(key, text);
  }
  return all;
}

/** One of two texts by number, as the language has it. */
export function plural(count: number, one: Key, other: Key, values: Values = {}): string {
  const form = new Intl.PluralRules(language).select(count);
  return t(form === "one" ? one : other, { count, ...values });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Makes a component speak the current language. */
export function useLanguage(): Language {
  return useSyncExternalStore(subscribe, currentLanguage, currentLanguage);
}
