// Which model and which version really ran: the first rows of the runtime say it.
import type { Rows, RunView } from "@runyard/react";

/** It is said at the start or not at all. */
const LOOK_MAX = 200;
const found = new WeakMap<object, string[]>();

/** Kind, model and version, as far as they are known. */
export function modelOf(view: RunView): string[] {
  if (view.started === null) return [];
  // The object of the start is the same for as long as the run is shown; what was found once stays.
  const known = found.get(view.started);
  if (known !== undefined) return known;
  const facts = search(view.rows);
  if (facts.model === undefined) return [view.started.backendKind];
  const told = [facts.model, facts.version].filter((fact) => fact !== undefined);
  found.set(view.started, told);
  return told;
}

function search(rows: Rows): { model?: string; version?: string } {
  const facts: { model?: string; version?: string } = {};
  for (let index = 0; index < Math.min(rows.length, LOOK_MAX); index += 1) {
    const row = rows.at(index);
    if (row.kind !== "runtime" || row.status === undefined) continue;
    if (row.status.model !== undefined) facts.model ??= row.status.model;
    if (row.status.version !== undefined) facts.version ??= row.status.version;
  }
  return facts;
}
