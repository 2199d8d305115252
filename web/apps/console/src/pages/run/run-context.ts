// What every part of a run's page is given.
import type { RunSnapshot } from "@runyard/react";

/** How far a run was read whose past is still being read; `of` is null before the hub said how much there is. */
export interface Reading {
  at: number;
  of: number | null;
}

/** The run that is shown, as tabs and panels take it. */
export interface ShownRun {
  id: string;
  snapshot: RunSnapshot;
  /** Null where what is shown is what the hub has. Before that it is the past: nothing may be said or done as if it were now. */
  reading: Reading | null;
}
