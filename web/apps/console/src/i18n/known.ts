// Records are in English for ever. Sentences that our own code writes are said in the reader's language; all else stays as it is.
import { currentLanguage, maybe } from ".";
import { known } from "./en/known";

/** Sentences hold sentences, but not for long. */
const DEPTH_MAX = 3;
/** Longer ones are not ours. */
const CHARS_MAX = 2_000;
const BETWEEN = "; ";
const NUMBERS: ReadonlySet<string> = new Set(["count", "files", "bytes", "ms", "version"]);

interface Pattern {
  key: string;
  expression: RegExp;
  names: readonly string[];
}

// Those with the most words of their own first: `the rule … of this run says so` is not `the rule … says so`.
const PATTERNS: readonly Pattern[] = Object.entries(known)
  .map(([key, text]) => ({ key, text, own: text.replace(/\{\w+\}/g, "").length }))
  .sort((one, other) => other.own - one.own)
  .map(({ key, text }) => ({
    key,
    expression: new RegExp(`^${text.split(/\{(\w+)\}/).map((part, at) => (at % 2 === 0 ? escaped(part) : place(part))).join("")}$`, "s"),
    names: [...text.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name),
  }));

function place(name: string): string {
  return NUMBERS.has(name) ? String.raw`(\d+)` : "(.+?)";
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** Which known sentence a text is, with what stands in its places. */
export function knownAs(text: string): { key: string; values: Record<string, string> } | undefined {
  if (text.length > CHARS_MAX) return undefined;
  for (const { key, expression, names } of PATTERNS) {
    const found = expression.exec(text);
    if (found !== null) return { key, values: Object.fromEntries(names.map((name, index) => [name, found[index + 1] ?? ""])) };
  }
  return undefined;
}

/** A recorded text in the reader's language where it is a known sentence, or several; the text itself otherwise. */
export function told(text: string): string {
  return currentLanguage() === "en" ? text : inTheirs(text, DEPTH_MAX);
}

function inTheirs(text: string, depth: number): string {
  const found = depth === 0 ? undefined : knownAs(text);
  if (found === undefined) {
    const parts = text.split(BETWEEN);
    const areOurs = depth > 0 && parts.length > 1 && parts.every((part) => knownAs(part) !== undefined);
    return areOurs ? parts.map((part) => inTheirs(part, depth - 1)).join("；") : text;
  }
  const values = Object.fromEntries(Object.entries(found.values).map(([name, value]) => [name, inTheirs(value, depth - 1)]));
  return maybe(`run.known.${found.key}`, values) ?? text;
}
