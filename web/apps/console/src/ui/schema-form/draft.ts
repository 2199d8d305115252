// What somebody typed into a form, as it was typed: a number is its digits, JSON its text. Reading it gives a value or says where
// it cannot be read; nothing is thrown away either way. A draft is plain JSON, so it can be kept and brought back.
import { exact, inexact, isNumber, own, parseJson, same, typeOf, type Json } from "./json";
import { shapeOf, type NamedShape, type Option, type Shape } from "./shape";

/** One row of a list; its id stays while others come and go. */
export interface Row {
  id: number;
  draft: Draft;
}

/** What was typed into a field. Nothing, or null, is an empty one. */
export type Draft =
  | undefined
  | null
  | string
  | { isNull: true }
  | { rows: Row[] }
  | { fields: Draft[] }
  | { option: number; drafts: Draft[] };

/** What is wrong, and where: a runtime's issue, or one of the form itself. */
export interface FormIssue {
  path: readonly (string | number)[];
  message: string;
}

/** What a form says. */
export type ReadForm = { ok: true; value: Json | undefined } | { ok: false; issues: FormIssue[] };

export const isNullDraft = (draft: Draft): draft is { isNull: true } => typeof draft === "object" && draft !== null && "isNull" in draft;
export const typed = (draft: Draft): string => (typeof draft === "string" ? draft : "");
export const rowsOf = (draft: Draft): Row[] => (typeof draft === "object" && draft !== null && "rows" in draft ? draft.rows : []);
export const fieldOf = (draft: Draft, index: number): Draft =>
  typeof draft === "object" && draft !== null && "fields" in draft ? draft.fields[index] : undefined;

/** Which form was chosen, with what was typed into each. */
export function unionOf(draft: Draft): { option: number; drafts: Draft[] } {
  return typeof draft === "object" && draft !== null && "option" in draft ? draft : { option: -1, drafts: [] };
}

/** The draft of a group with one field changed. */
export function withField(fields: NamedShape[], draft: Draft, index: number, next: Draft): Draft {
  return { fields: fields.map((_, place) => (place === index ? next : fieldOf(draft, place))) };
}

/** The draft of a list with one more row; it is the last. */
export function withRow(draft: Draft, added: Draft = undefined): { rows: Row[] } {
  const rows = rowsOf(draft);
  const id = rows.reduce((most, row) => Math.max(most, row.id), 0) + 1;
  return { rows: [...rows, { id, draft: added }] };
}

/** What the form says by what was typed into it; all that cannot be read is named. */
export function readForm(schema: unknown, draft: Draft): ReadForm {
  const issues: FormIssue[] = [];
  const value = read(shapeOf(schema), draft, [], true, issues);
  return issues.length ? { ok: false, issues } : { ok: true, value };
}

function read(shape: Shape, draft: Draft, path: (string | number)[], required: boolean, issues: FormIssue[]): Json | undefined {
  if (shape.kind === "fixed") return shape.value;
  if (isNullDraft(draft)) return null;
  const json = (text: string): Json | undefined => {
    const parsed = parseJson(text);
    if (parsed.ok) return parsed.value;
    issues.push({ path, message: parsed.message });
    return undefined;
  };
  switch (shape.kind) {
    case "text":
      return typed(draft) || undefined;
    case "number":
      return readNumber(typed(draft).trim(), path, issues);
    case "choice":
      return typed(draft) === "" ? undefined : shape.choices[Number(typed(draft))]?.value;
    case "json":
      return typed(draft).trim() === "" ? undefined : json(typed(draft));
    case "textOrJson":
      if (typed(draft) === "") return undefined;
      return isText(typed(draft), shape.types) ? typed(draft) : json(typed(draft));
    case "list": {
      const items = rowsOf(draft).map((row, index) => read(shape.item, row.draft, [...path, index], false, issues) ?? blank(shape.item));
      return items.length || (required && path.length) ? items : undefined;
    }
    case "group":
      return readGroup(shape.fields, draft, path, required, issues);
    case "union": {
      const { option, drafts } = unionOf(draft);
      const chosen = shape.options[option]?.shape;
      return chosen && (read(chosen, drafts[option], path, true, issues) ?? {});
    }
  }
}

function readNumber(given: string, path: (string | number)[], issues: FormIssue[]): Json | undefined {
  if (given === "") return undefined;
  // What is no number goes on as it is, for the validation to name.
  if (!isNumber(given)) return given;
  if (exact(given)) return Number(given);
  issues.push({ path, message: inexact(given) });
  return undefined;
}

function readGroup(fields: NamedShape[], draft: Draft, path: (string | number)[], required: boolean, issues: FormIssue[]) {
  const given = fields.flatMap(({ name, shape, required: needed }, index): [string, Json][] => {
    const value = read(shape, fieldOf(draft, index), [...path, name], needed, issues);
    return value === undefined ? [] : [[name, value]];
  });
  return given.length || required ? Object.fromEntries(given) : undefined;
}

/** What an empty row of a list is sent as. */
function blank(shape: Shape): Json {
  if (shape.kind === "group" || shape.kind === "union") return {};
  return shape.kind === "list" ? [] : "";
}

/** Whether a text is taken for text, and not for JSON of another type that fits. */
export function isText(text: string, types: string[] | null): boolean {
  try {
    const type = typeOf(JSON.parse(text));
    return types !== null && !types.includes(type) && !(type === "number" && types.includes("integer"));
  } catch {
    return true;
  }
}

/** The draft that says this value. What the form cannot show is missing in it: see `fits`. */
export function draftOf(schema: unknown, value: unknown): Draft {
  return write(shapeOf(schema), value);
}

/** Whether a form of this schema can show all of a value. */
export function fits(schema: unknown, value: unknown): boolean {
  const read = readForm(schema, draftOf(schema, value));
  return read.ok && same(read.value ?? {}, value ?? {});
}

function write(shape: Shape, value: unknown): Draft {
  if (value === undefined) return undefined;
  if (value === null && shape.nullable) return { isNull: true };
  switch (shape.kind) {
    case "fixed":
      return undefined;
    case "text":
      return typeof value === "string" ? value : undefined;
    case "number":
      return value === null ? undefined : String(value);
    case "choice": {
      const place = shape.choices.findIndex((choice) => same(choice.value, value));
      return place < 0 ? undefined : String(place);
    }
    case "json":
      return JSON.stringify(value, null, 2);
    case "textOrJson":
      return typeof value === "string" && isText(value, shape.types) ? value : JSON.stringify(value, null, 2);
    case "list":
      return Array.isArray(value) ? { rows: value.map((each, index) => ({ id: index + 1, draft: write(shape.item, each) })) } : undefined;
    case "group":
      return { fields: shape.fields.map(({ name, shape: inner }) => write(inner, own(value, name))) };
    case "union":
      return writeUnion(shape.options, value);
  }
}

/** The first of the forms that can show all of it, or else the first that its fixed values fit. */
function writeUnion(options: Option[], value: unknown): Draft {
  const fixedFits = ({ shape }: Option) =>
    shape.kind === "group" && shape.fields.every((field) => field.shape.kind !== "fixed" || same(field.shape.value, own(value, field.name)));
  const shows = ({ shape }: Option) => same(read(shape, write(shape, value), [], true, []), value);
  const candidates = options.filter(fixedFits);
  const found = candidates.find(shows) ?? candidates[0];
  if (!found) return undefined;
  const option = options.indexOf(found);
  return { option, drafts: options.map((each, index) => (index === option ? write(each.shape, value) : undefined)) };
}
