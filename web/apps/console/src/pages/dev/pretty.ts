// JSON for people: indented, with nothing hidden in it, and still JSON.
import { t } from "../../i18n";

const SHOWN_CHARS_MAX = 400_000;

const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** JSON text in which what has no shape, or turns the direction of writing, is spelled out as JSON does. */
export function spelledOut(json: string): string {
  const unit = (one: string) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(HIDDEN, (found) => found.split("").map(unit).join(""));
}

/** A value as indented JSON; of one that is very large the beginning, and how much more there is. */
export function pretty(value: unknown): string {
  const text = spelledOut(JSON.stringify(value, null, 2) ?? "");
  if (text.length <= SHOWN_CHARS_MAX) return text;
  return `${text.slice(0, SHOWN_CHARS_MAX)}\n${t("dev.moreChars", { count: text.length - SHOWN_CHARS_MAX })}`;
}
