// What rows show of the events that need no more than themselves, or than the row before.

import type { RunState } from "../generated/lifecycle.js";
import type { OutputPiece, RowContent } from "../view.js";
import type { KnownEvent } from "./known.js";

/** So many files are named in one row. */
const READ_PATHS_MAX = 200;

/** What an event that stands alone shows. */
export function single(event: KnownEvent, state: RunState | "unknown"): RowContent {
  switch (event.type) {
    case "run.gate.judged":
      return { kind: "judged", judged: event.payload };
    case "run.diff.ready":
      return { kind: "diff", diff: event.payload };
    case "run.patch.proposed":
      return { kind: "patch", patch: event.payload };
    case "run.artifact.ready":
      return { kind: "artifact", artifact: event.payload };
    case "run.preview.ready":
      return { kind: "preview", preview: event.payload };
    case "run.thread.recorded":
      return { kind: "thread" };
    case "run.command.heard":
      return { kind: "heard" };
    case "run.cancel.requested":
      return { kind: "cancelling", requested: event.payload };
    case "run.secrets.projected":
      return { kind: "secrets", secrets: event.payload };
    case "run.degraded":
      return { kind: "degraded", reason: event.payload.reason };
    case "runtime.died":
      return { kind: "runtime", died: event.payload };
    case "runtime.error":
    case "runtime.unavailable":
    case "runtime.timeout":
    case "schema.validation_failed":
      return { kind: "runtime", error: event.payload };
    default:
      return state === "unknown" ? { kind: "unknown", type: event.type } : { kind: "lifecycle", state };
  }
}

/** Whether a row is what the runtime says about itself, or a step that is seen elsewhere: a compact timeline leaves it out. */
export function isQuiet(row: RowContent): boolean {
  switch (row.kind) {
    case "runtime":
      return row.died === undefined && row.error === undefined;
    case "lifecycle":
      return row.state !== "applying" && row.state !== "completed" && row.state !== "failed" && row.state !== "cancelled";
    case "judged":
      return row.judged.effect === "allow";
    case "secrets":
    case "thread":
    case "heard":
      return true;
    default:
      return false;
  }
}

/** What a row shows with one event more, or by itself; null where the event does not belong to it. */
export function join(before: RowContent | null, event: KnownEvent): RowContent | null {
  switch (event.type) {
    case "run.file.read": {
      const { path } = event.payload;
      if (before === null) return { kind: "read", paths: [path] };
      if (before.kind !== "read" || before.paths.length >= READ_PATHS_MAX) return null;
      return { kind: "read", paths: before.paths.includes(path) ? before.paths : [...before.paths, path] };
    }
    case "run.plan.updated":
      return before === null || before.kind === "plan" ? { kind: "plan", steps: event.payload.steps } : null;
    case "run.reasoning": {
      const { item, text } = event.payload;
      if (before === null) return { kind: "reasoning", item, text };
      if (before.kind !== "reasoning" || before.item !== item) return null;
      return { kind: "reasoning", item, text: `${before.text}\n\n${text}` };
    }
    case "runtime.status": {
      const same = before?.kind === "runtime" && before.status?.phase === event.payload.phase;
      return before === null || same ? { kind: "runtime", status: event.payload } : null;
    }
    default:
      return null;
  }
}

/** Adds to the last piece where nothing is missing in between. */
export function append(output: OutputPiece[], piece: OutputPiece): void {
  const last = output.at(-1);
  const follows = last !== undefined && last.stream === piece.stream && last.omitted === 0;
  if (!follows) {
    output.push(piece);
    return;
  }
  output[output.length - 1] = { ...last, ...piece, text: last.text + piece.text };
}

/** The call that a request belongs to, by the backend's names for both: "<call>#<number>". */
export function callOf(key: string): string {
  const mark = key.lastIndexOf("#");
  return mark < 0 ? key : key.slice(0, mark);
}
