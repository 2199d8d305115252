// What the address says about a run's page: which row is chosen, how the timeline is shown, which event is pointed at.
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

/** How the timeline is shown. */
export type TimelineView = "compact" | "full" | "json";
/** The ways, in the order of the switch. */
export const TIMELINE_VIEWS: readonly TimelineView[] = ["compact", "full", "json"];

/** The place in a run that an address names, and the ways to another. */
export interface RunPlace {
  view: TimelineView;
  /** The sequence of an event in the chosen row. */
  selected: number | null;
  /** The event that `#seq=` points at, and what tells one pointing from the next. */
  target: { sequence: number; visit: string } | null;
  select(sequence: number | null): void;
  setView(view: TimelineView): void;
}

function sequenceOf(text: string | undefined): number | null {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;
}

/** The sequence in a hash such as `seq=4321`. */
export function targetOf(hash: string): number | null {
  return hash.startsWith("seq=") ? sequenceOf(hash.slice(4)) : null;
}

/** Reads the address of a run's page. */
export function useRunPlace(id: string): RunPlace {
  const navigate = useNavigate();
  const hash = useRouterState({ select: (state) => state.location.hash });
  const visit = useRouterState({ select: (state) => state.location.state.__TSR_key ?? "" });
  const search = useRouterState({ select: (state) => JSON.stringify(picked(state.location.search)) });
  const select = useCallback(
    (sequence: number | null) => {
      const sel = sequence === null ? undefined : String(sequence);
      void navigate({
        to: "/runs/$id",
        params: { id },
        search: (now) => kept({ ...now, sel }),
        replace: true,
        resetScroll: false,
      });
    },
    [id, navigate],
  );
  const setView = useCallback(
    (view: TimelineView) => {
      const named = view === "compact" ? undefined : view;
      void navigate({
        to: "/runs/$id",
        params: { id },
        search: (now) => kept({ ...now, view: named }),
        hash: true,
        replace: true,
        resetScroll: false,
      });
    },
    [id, navigate],
  );
  return useMemo(() => {
    const { sel, view } = picked(JSON.parse(search));
    const sequence = targetOf(hash);
    return {
      view: TIMELINE_VIEWS.find((name) => name === view) ?? "compact",
      selected: sequenceOf(sel) ?? sequence,
      target: sequence === null ? null : { sequence, visit: `${hash} ${visit}` },
      select,
      setView,
    };
  }, [search, hash, visit, select, setView]);
}

interface Picked {
  sel?: string | undefined;
  view?: string | undefined;
}

function picked(search: Picked): Picked {
  return { sel: search.sel, view: search.view };
}

/** Only what the timeline reads: a file of the diff is not carried over. */
function kept({ sel, view }: Picked): { sel?: string; view?: string } {
  return { ...(sel !== undefined && { sel }), ...(view !== undefined && { view }) };
}

/** The address of one event, to be sent to somebody. */
export function permalink(id: string, sequence: number): string {
  return `${location.origin}/runs/${encodeURIComponent(id)}#seq=${sequence}`;
}
