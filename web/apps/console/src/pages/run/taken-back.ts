// Whether what a run applied was taken back since: its own log has ended and cannot say it, but a later run's can.
import { useRuns, type RunView } from "@runyard/react";
import { isEnded } from "./lifecycle";
import { takesBack } from "./words";

/** The run that takes back what this one applied, and whether it has done so. */
export type TakenBack = { kind: "no" } | { kind: "asked" | "done"; by: string };

/** Looks for a later run that takes back what this one applied. */
export function useTakenBack(id: string, { createdAt }: Pick<RunView, "createdAt">): TakenBack {
  const { runs } = useRuns({ text: id, ...(createdAt !== null && { since: createdAt }) });
  const undoing = runs.filter((one) => takesBack(one.task, id));
  const done = undoing.find((one) => one.state === "completed");
  if (done !== undefined) return { kind: "done", by: done.id };
  const asked = undoing.find((one) => !isEnded(one.state));
  return asked === undefined ? { kind: "no" } : { kind: "asked", by: asked.id };
}
