// The console's own words, so that a test finds things by what they are called in either language.
import { en } from "../../apps/console/src/i18n/en/index.ts";
import { zh } from "../../apps/console/src/i18n/zh/index.ts";

export type Language = "en" | "zh";
export const LANGUAGES: readonly Language[] = ["en", "zh"];

/** The text of a key, with its placeholders filled in. Names in it may themselves hold dots, as codes do. */
export function words(key: string, values: Record<string, string | number> = {}, language: Language = "en"): string {
  const text = find(language === "en" ? en : zh, key);
  if (text === undefined) throw new Error(`there is no text ${key} in ${language}`);
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

function find(at: unknown, key: string): string | undefined {
  if (typeof at !== "object" || at === null) return undefined;
  const own: unknown = Reflect.get(at, key);
  if (typeof own === "string") return own;
  for (let dot = key.indexOf("."); dot !== -1; dot = key.indexOf(".", dot + 1)) {
    const found = find(Reflect.get(at, key.slice(0, dot)), key.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}
