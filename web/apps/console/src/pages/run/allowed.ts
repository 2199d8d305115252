// What may be said to a run where it stands. The hub decides; this only says beforehand what it would refuse, and why.
import type { RunView } from "@runyard/react";
import type { Key } from "../../i18n";
import { isEnded } from "./lifecycle";

/** What a person can do to a run. */
export type Deed = "turn" | "steer" | "interrupt" | "finish" | "cancel";

/** Why a deed is refused now, or nothing where it may be done. */
export function refusal(
  view: Pick<RunView, "state" | "turnActive" | "executionPolicy" | "cancelRequested">,
  deed: Deed,
  mayWrite: boolean,
): Key | undefined {
  if (!mayWrite) return "run.refused.permission";
  if (view.state === "unknown") return "run.refused.unknown";
  if (isEnded(view.state)) return "run.refused.ended";
  if (deed === "cancel") return view.cancelRequested === null ? undefined : "run.refused.cancelling";
  if (view.state === "applying") return "run.refused.applying";
  switch (deed) {
    case "turn":
      return undefined;
    case "finish":
      return view.executionPolicy?.keepOpenMs === undefined ? "run.refused.notKeptOpen" : undefined;
    case "steer":
    case "interrupt":
      return view.turnActive ? undefined : "run.refused.noTurn";
  }
}

/** Whether a further run can go on in the session of this one: it has ended, and was said to an agent in words. */
export function mayGoOn({ state, task, carries }: Pick<RunView, "state" | "task" | "carries">): boolean {
  return isEnded(state) && task?.kind === "text" && !carries;
}

/** What the form of a new run is opened with to go on from one. */
export function goingOn(from: string): { from: string; mode: "continue" } {
  return { from, mode: "continue" };
}
