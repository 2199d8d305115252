// What happens at this moment, told from the last rows without reading the whole history.
import type { Row, RunView } from "@runyard/react";
import { isEnded } from "./lifecycle";
import { callText } from "./words";

/** What a run is doing, and since when. */
export type Happening =
  | { kind: "nothing" }
  | { kind: "ended"; since: string }
  | { kind: "state"; state: "created" | "planned" | "accepted" | "preparing" | "applying"; since: string }
  | { kind: "cancelling"; since: string }
  | { kind: "person"; count: number; since: string }
  | { kind: "tool"; tool: string; summary: string; since: string; sequence: number }
  | { kind: "writing"; since: string; sequence: number }
  | { kind: "model"; since: string }
  | { kind: "idle"; since: string };

/** Tools run side by side, but not so many that one that runs stands further back. */
const LOOK_BACK_MAX = 60;

/** What happens now. */
export function happening(view: RunView): Happening {
  const { state, lastAt } = view;
  if (state === "unknown" || lastAt === null) return { kind: "nothing" };
  if (isEnded(state)) return { kind: "ended", since: lastAt };
  if (view.cancelRequested !== null) return { kind: "cancelling", since: lastAt };
  if (state === "needs_approval") return { kind: "person", count: view.open.length, since: view.open[0]?.at ?? lastAt };
  if (state !== "running") return { kind: "state", state: waitsIn(state), since: view.steps.at(-1)?.at ?? lastAt };
  const row = unfinished(view);
  if (row?.kind === "tool")
    return { kind: "tool", tool: row.call.tool, summary: callText(row.call), since: row.at, sequence: row.last };
  if (row?.kind === "message") return { kind: "writing", since: row.at, sequence: row.last };
  return view.turnActive ? { kind: "model", since: lastAt } : { kind: "idle", since: lastAt };
}

function waitsIn(state: string): "created" | "planned" | "accepted" | "preparing" | "applying" {
  return state === "planned" || state === "accepted" || state === "preparing" || state === "applying" ? state : "created";
}

function unfinished({ rows }: RunView): Row | undefined {
  const end = Math.max(0, rows.length - LOOK_BACK_MAX);
  for (let index = rows.length - 1; index >= end; index -= 1) {
    const row = rows.at(index);
    if (row.kind === "tool" && row.result === null) return row;
    if (row.kind === "message" && !row.complete && index === rows.length - 1) return row;
    if (row.kind === "turn") return undefined;
  }
  return undefined;
}
