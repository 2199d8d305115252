// What every part of a run's page is given.
import type { RunSnapshot } from "@runyard/react";

/** The run that is shown, as tabs and panels take it. */
export interface ShownRun {
  id: string;
  snapshot: RunSnapshot;
}
