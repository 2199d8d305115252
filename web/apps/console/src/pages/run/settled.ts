// Whether what is stored of a run was read, so that what is drawn from it has its size from the first time that it is seen.
import { useData } from "@runyard/react";
import { useEffect, useState } from "react";
import { isEnded } from "./lifecycle";
import type { ShownRun } from "./run-context";

/** Rows of a long run are shown before all of it was read. */
const ROWS_AFTER_MS = 500;
/** What waits for all of it waits no longer than this. */
const ALL_AFTER_MS = 5_000;

/** Nothing to show yet, some of it, or all that was stored when the page was opened. */
export type Reading = "begun" | "some" | "all";

/** How far a run was read since its page was opened. It never goes back. */
export function useReading({ id, snapshot }: ShownRun): Reading {
  const { view, link } = snapshot;
  const { data, error } = useData("run_show", { id });
  const [waited, setWaited] = useState<Reading>("begun");
  // A run that was watched before is there already.
  const [all, setAll] = useState(view.lastSequence > 0);
  const stored = data?.run.lastSequence ?? null;
  const isRead =
    link.kind === "ended" || link.kind === "refused" || error != null || isEnded(view.state) ||
    (stored !== null && view.lastSequence >= stored);
  useEffect(() => {
    if (isRead) setAll(true);
  }, [isRead]);
  useEffect(() => {
    const rows = setTimeout(() => setWaited("some"), ROWS_AFTER_MS);
    const whole = setTimeout(() => setWaited("all"), ALL_AFTER_MS);
    return () => {
      clearTimeout(rows);
      clearTimeout(whole);
    };
  }, []);
  return all || isRead ? "all" : waited;
}
