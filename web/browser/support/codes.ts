// The error codes as docs/errors.md lists them, so that a code that is added there is tested here.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Row {
  code: string;
  recovery: string;
}

const TEXT = readFileSync(join(import.meta.dirname, "../../../docs/errors.md"), "utf8");

/** The rows of one table of the page. */
export function codesOf(section: string): Row[] {
  const part = TEXT.split(/^## /m).find((text) => text.startsWith(`${section}\n`));
  if (part === undefined) throw new Error(`docs/errors.md has no section ${section}`);
  const lines = part.split("\n").filter((line) => line.startsWith("| `"));
  return lines.map((line) => {
    const cells = line.split(" | ");
    const code = /`([^`]+)`/.exec(cells[0] ?? "")?.[1];
    if (code === undefined) throw new Error(`no code in ${line}`);
    return { code, recovery: (cells.at(-1) ?? "").replace(/ \|$/, "") };
  });
}

/** The codes with which a run can end. */
export const RUN_CODES = codesOf("Runs");
/** How a backend can fail; each has a run's code beside it. */
export const FAILURE_KINDS = codesOf("Backends").filter((row) => row.code !== "cancelled");
