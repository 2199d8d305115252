// How many runs each view holds. The hub gives no counts: they are counted as far as its lists were read.
import { useRuns, type RunState, type RunSummary } from "@runyard/react";
import { inView, type View } from "./filter";

type List = ReturnType<typeof useRuns>;

/** How many there are, and where there are more than were counted. */
export interface Counts {
  counts: Record<View, number>;
  more: Record<View, boolean>;
}

/**
 * Counts what passes. `all` is the list of all runs: those that still go on may be further down than it was read, so their states
 * are asked for one by one as soon as it has more.
 */
export function useCounts(all: List, needing: List, passes: (run: RunSummary) => boolean): Counts {
  const whole = all.next === null;
  const active = [
    useActive("created", whole),
    useActive("planned", whole),
    useActive("accepted", whole),
    useActive("preparing", whole),
    useActive("running", whole),
    useActive("applying", whole),
    needing,
  ];
  return countsOf(all, needing, active, passes);
}

/** The runs in a state. Where all runs were read nothing more is asked for: it is the same list. */
function useActive(state: RunState, whole: boolean): List {
  return useRuns(whole ? {} : { state });
}

type Read = Pick<List, "runs" | "next">;

/** Counts each run once, however many lists hold it. */
export function countsOf(all: Read, needing: Read, active: readonly Read[], passes: (run: RunSummary) => boolean): Counts {
  const count = (view: View, lists: readonly Read[]) =>
    new Set(lists.flatMap(({ runs }) => runs.filter((run) => inView(run, view) && passes(run)).map(({ id }) => id))).size;
  const rest = ({ next }: Read) => next !== null;
  return {
    counts: {
      all: count("all", [all]),
      needs: count("needs", [needing]),
      active: count("active", [all, ...active]),
      ended: count("ended", [all]),
    },
    more: { all: rest(all), needs: rest(needing), active: active.some(rest), ended: rest(all) },
  };
}
