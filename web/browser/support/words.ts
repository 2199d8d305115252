// The console's own words, so that a test finds things by what they are called in either language.
import { en } from "../../apps/console/src/i18n/en/index.ts";
import { zh } from "../../apps/console/src/i18n/zh/index.ts";

export type Language = "en" | "zh";
export const LANGUAGES: readonly Language[] = ["en", "zh"];

/** The text of a key, with its placeholders filled in. */
export function words(key: string, values: Record<string, string | number> = {}, language: Language = "en"): string {
  let at: unknown = language === "en" ? en : zh;
  for (const part of key.split(".")) at = typeof at === "object" && at !== null ? Reflect.get(at, part) : undefined;
  if (typeof at !== "string") throw new Error(`there is no text ${key} in ${language}`);
  return at.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
