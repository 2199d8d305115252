// Where in a form an issue belongs. A field is known by its id, which says its place and survives what is typed elsewhere.
import { fieldOf, rowsOf, unionOf, type Draft, type FormIssue } from "./draft";
import type { Shape } from "./shape";

/** The id of a group's field. */
export const fieldId = (id: string, index: number): string => `${id}-${index}`;
/** The id of a list's row. */
export const rowId = (id: string, row: number): string => `${id}-r${row}`;

/** Issues by the id of their field, and those that belong to none. */
export interface Placed {
  at: Map<string, string[]>;
  rest: string[];
}

/** Puts each issue to the innermost field on its path. */
export function placed(shape: Shape, draft: Draft, id: string, issues: readonly FormIssue[]): Placed {
  const at = new Map<string, string[]>();
  const rest: string[] = [];
  for (const { path, message } of issues) {
    const found = place(shape, draft, id, path, shape.kind === "group" ? null : id);
    if (found === null) rest.push(path.length ? `${path.join(".")}: ${message}` : message);
    else at.set(found, [...(at.get(found) ?? []), message]);
  }
  return { at, rest };
}

function place(shape: Shape, draft: Draft, id: string, path: FormIssue["path"], here: string | null): string | null {
  const [step, ...further] = path;
  if (step === undefined) return here;
  if (shape.kind === "group") {
    const index = shape.fields.findIndex((field) => field.name === step);
    const field = shape.fields[index];
    if (!field || field.shape.kind === "fixed") return here;
    return place(field.shape, fieldOf(draft, index), fieldId(id, index), further, fieldId(id, index));
  }
  if (shape.kind === "list") {
    const row = typeof step === "number" ? rowsOf(draft)[step] : undefined;
    return row ? place(shape.item, row.draft, rowId(id, row.id), further, rowId(id, row.id)) : here;
  }
  if (shape.kind === "union") {
    const { option, drafts } = unionOf(draft);
    const chosen = shape.options[option];
    return chosen ? place(chosen.shape, drafts[option], id, path, here) : here;
  }
  return here;
}
