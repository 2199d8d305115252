// How far what is stored of a run was read. What was not read to its end is the past, and is not shown as if it were now.
import { useData, type RunSnapshot } from "@runyard/react";
import { useEffect, useMemo, useRef, useState } from "react";
import { isEnded } from "./lifecycle";
import type { Reading } from "./run-context";

/** Rows of a long run are shown before all of it was read. */
const ROWS_AFTER_MS = 500;
/** How much there is, is asked again after so long where the hub did not say it. */
const AGAIN_MS = 2_000;

/** What can be drawn: nothing yet, some of it, or all, with the size that it keeps. It never goes back. */
export type Drawn = "none" | "some" | "all";

/** How far a run was read that the hub says to have so many events. */
export function readingOf({ view, link }: Pick<RunSnapshot, "view" | "link">, stored: number | null): Reading | null {
  const at = view.lastSequence;
  // Nothing comes after an end.
  if (link.kind === "ended" || isEnded(view.state) || (stored !== null && at >= stored)) return null;
  return { at, of: stored };
}

/** How far a run was read, and what can be drawn of it. */
export function useReading(id: string, snapshot: RunSnapshot): { reading: Reading | null; drawn: Drawn } {
  const stored = useStored(id, snapshot.link.kind);
  const reading = useMemo(() => readingOf(snapshot, stored), [snapshot, stored]);
  // A run that was watched before is there already.
  const [drawn, setDrawn] = useState<Drawn>(snapshot.view.lastSequence > 0 ? "all" : "none");
  const done = reading === null || snapshot.link.kind === "refused";
  useEffect(() => {
    if (done) return setDrawn("all");
    const rows = setTimeout(() => setDrawn((now) => (now === "none" ? "some" : now)), ROWS_AFTER_MS);
    return () => clearTimeout(rows);
  }, [done]);
  return { reading, drawn: done ? "all" : drawn };
}

/** How many events the hub had when the page was opened, or when its stream came back; null before it has said it. */
function useStored(id: string, link: RunSnapshot["link"]["kind"]): number | null {
  const { data, error, loading, refresh } = useData("run_show", { id });
  // What is left of an earlier look is no answer yet.
  const [answered, setAnswered] = useState(false);
  useEffect(() => {
    if (loading || data === undefined) return;
    // Not at once: that it is read again is known only after somebody has begun to look.
    const answer = setTimeout(() => setAnswered(true), 0);
    return () => clearTimeout(answer);
  }, [loading, data]);
  const broken = useRef(false);
  useEffect(() => {
    if (link === "live" && broken.current) void refresh();
    broken.current = link === "waiting" || (broken.current && link !== "live");
  }, [link, refresh]);
  useEffect(() => {
    if (error === null || link !== "live") return;
    const again = setTimeout(() => void refresh(), AGAIN_MS);
    return () => clearTimeout(again);
  }, [error, link, refresh]);
  return answered || !loading ? (data?.run.lastSequence ?? null) : null;
}
