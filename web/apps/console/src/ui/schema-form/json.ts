// JSON as people write it: nothing that was written is changed by reading it.
import { t } from "../../i18n";

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Whether it is an object, and neither a list nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What somebody put there, never what every object has, such as a constructor. */
export function own(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** Whether a text is a number as JSON writes it. */
export function isNumber(text: string): boolean {
  return NUMBER.test(text);
}

/** A number without what does not matter in writing it: `1.50e1` and `15` give the same. */
function digits(literal: string): string {
  const [, sign = "", whole = "", rest = "", power = "0"] = NUMBER.exec(literal) ?? [];
  const all = `${whole}${rest}`.replace(/^0+/, "");
  const significant = all.replace(/0+$/, "");
  return significant && `${sign}${significant}e${Number(power) - rest.length + all.length - significant.length}`;
}

/** Whether a number as it is written is still that number once a script has read it. */
export function exact(literal: string): boolean {
  return Number.isFinite(Number(literal)) && digits(literal) === digits(String(Number(literal)));
}

/** What to say of a number that a script cannot hold. */
export function inexact(literal: string): string {
  return t("dev.form.inexact", { literal });
}

/** What a text was read as, or why it was not. */
export type Parsed = { ok: true; value: Json } | { ok: false; message: string };

/** The JSON of a text, with every number in it as it is written. */
export function parseJson(text: string): Parsed {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return { ok: false, message: t("dev.form.notJson", { why: error instanceof Error ? error.message : String(error) }) };
  }
  const literals = text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, " ").match(/-?\d[\d.eE+-]*/g) ?? [];
  const changed = literals.find((literal) => !exact(literal));
  return changed === undefined ? { ok: true, value } : { ok: false, message: inexact(changed) };
}

/** Whether two values are the same, whatever the order of their keys. */
export function same(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  const keys = Object.keys(one);
  if (Array.isArray(one) !== Array.isArray(other) || keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && same(own(one, key), own(other, key)));
}

/** The type of a value by JSON Schema's word. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
