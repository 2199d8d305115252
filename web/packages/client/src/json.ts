// Reads JSON without changing numbers that a script cannot hold.

/** A number as it was written: too long to be exact as a number. It goes out as it came in. */
export interface RawNumber {
  readonly rawJSON: string;
}

interface SourceContext {
  source?: string;
}

type Reviver = (this: unknown, key: string, value: unknown, context?: SourceContext) => unknown;

interface RawJson {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON?: (text: string) => RawNumber;
}

const raw: RawJson = JSON;

/** What may be such a number; also in texts, which costs time and no more. */
const MAY_BE_INEXACT = /[[:,]\s*-?(?:[\d.]{16,}|[\d.]+[eE])/;

/** Reads JSON; a number that would not be exact stays as it is written, where the runtime can do so. */
export function readJson(text: string): unknown {
  const make = raw.rawJSON;
  if (make === undefined || !MAY_BE_INEXACT.test(text)) return JSON.parse(text);
  return raw.parse(text, (_, value, context) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && !isExact(source) ? make(source) : value;
  });
}

/** Whether a number as it is written is still that number once a script has read it. */
export function isExact(literal: string): boolean {
  return Number.isFinite(Number(literal)) && digits(literal) === digits(String(Number(literal)));
}

function digits(text: string): string {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  const [, sign = "", whole = "", rest = "", power = "0"] = parts ?? [];
  const all = `${whole}${rest}`.replace(/^0+/, "");
  const significant = all.replace(/0+$/, "");
  return significant && `${sign}${significant}e${Number(power) - rest.length + all.length - significant.length}`;
}
