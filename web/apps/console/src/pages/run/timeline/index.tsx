// The timeline of a run: grouped rows or raw events, followed or read, with the bar that says which.
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";
import { t, useLanguage } from "../../../i18n";
import { isEnded } from "../lifecycle";
import type { RunPlace } from "../location";
import type { ShownRun } from "../run-context";
import { EndCard } from "../end-card";
import { FollowBar } from "./follow-bar";
import { GroupedRows } from "./grouped";
import { useTimelineKeys } from "./keys";
import type { ListControl } from "./list";
import { RawEvents } from "./raw";

/** How the rest of the page moves the timeline. */
export interface Source {
  /** How many are shown. */
  count: number;
  /** The place of an event, `hidden` where its row is left out, nothing where it is not there. */
  positionOf(sequence: number): number | "hidden" | undefined;
  /** The place of an event, or of the next one that is shown. */
  near(sequence: number): number | undefined;
  sequenceAt(position: number): number;
  toggle(position: number): void;
}

/** What is kept of the timeline while another part of the run, or another view, is looked at. */
export interface Memory {
  following: boolean | null;
  /** The first event in view. */
  top: number | null;
  open: ReadonlySet<string>;
}

/** The timeline. */
export function Timeline({ run, place, memory }: { run: ShownRun; place: RunPlace; memory: Memory }) {
  useLanguage();
  const { view } = run.snapshot;
  const control = useRef<ListControl | null>(null);
  const source = useRef<Source | null>(null);
  const [following, setFollowing] = useState(memory.following ?? (place.target === null && place.selected === null));
  const [open, setOpen] = useState(memory.open);
  const onFollow = useCallback((on: boolean) => setFollowing(on), []);
  useEffect(() => {
    memory.following = following;
    memory.open = open;
  }, [memory, following, open]);
  const fresh = useFresh(following, view.lastSequence);
  useJump(place, memory, source, control, view.rows.rev);
  useTimelineKeys(place, source, control);
  const shared = {
    run,
    place,
    control,
    source,
    followAtStart: following,
    onFollow,
    onTop: (sequence: number) => {
      memory.top = sequence;
    },
    total: isEnded(view.state) ? undefined : -1,
    footer: <EndCard run={run} />,
  };
  return (
    <section className="tl" aria-label={t("run.tab.timeline")}>
      {place.view === "json" ? (
        <RawEvents key="json" {...shared} />
      ) : (
        <GroupedRows key={place.view} {...shared} all={place.view === "full"} open={open} setOpen={setOpen} />
      )}
      <FollowBar view={view} runId={run.id} following={following} fresh={fresh} onFollow={() => control.current?.follow()} />
    </section>
  );
}

const QUIET_MS = 700;
const LOADING_MS_MAX = 5_000;

/** Whether what is stored has been read: what comes from then on is new. */
function useLoaded(lastSequence: number): boolean {
  const [loaded, setLoaded] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLoaded(true), LOADING_MS_MAX);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    if (loaded || lastSequence === 0) return;
    const timer = setTimeout(() => setLoaded(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [loaded, lastSequence]);
  return loaded;
}

/** How many events came since the reader went up, or since what is stored was read where they came to the middle of it. */
function useFresh(following: boolean, lastSequence: number): number {
  const [readUpTo, setReadUpTo] = useState(0);
  const [letGo, setLetGo] = useState(false);
  const loaded = useLoaded(lastSequence);
  useEffect(() => {
    if (following) setLetGo(true);
    setReadUpTo((now) => (following ? 0 : now === 0 || !(loaded || letGo) ? lastSequence : now));
  }, [following, loaded, letGo, lastSequence]);
  return following || readUpTo === 0 ? 0 : Math.max(0, lastSequence - readUpTo);
}

const ARRIVE_TRIES_MAX = 10;
type Align = "center" | "start";

/** Goes to a row and looks whether it is there: a list that has just been made may not scroll yet. */
function arrive(
  sequence: number,
  align: Align,
  source: RefObject<Source | null>,
  control: RefObject<ListControl | null>,
  tries = ARRIVE_TRIES_MAX,
): void {
  const position = source.current?.near(sequence);
  if (position === undefined) return;
  control.current?.show(position, align);
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (tries > 0 && control.current?.shows(position) === false) arrive(sequence, align, source, control, tries - 1);
    }),
  );
}

/** Goes to the event that the address points at, or to where the reader was, once it is there. Each pointing counts once. */
function useJump(
  place: RunPlace,
  memory: Memory,
  source: RefObject<Source | null>,
  control: RefObject<ListControl | null>,
  rev: number,
): void {
  const { target, selected, view, setView } = place;
  const done = useRef("");
  const [start] = useState(() => selected ?? (memory.following === false ? memory.top : null));
  const sequence = target?.sequence ?? start;
  const visit = target?.visit ?? (start === null ? "" : `start ${start}`);
  useEffect(() => {
    if (sequence === null || visit === "" || done.current === visit) return;
    const position = source.current?.positionOf(sequence);
    if (position === undefined) return;
    if (position === "hidden" && view === "compact") {
      setView("full");
      return;
    }
    done.current = visit;
    arrive(sequence, target === null && selected === null ? "start" : "center", source, control);
  }, [sequence, visit, target, selected, view, rev, source, control, setView]);
  // Another view: the reader stays where the reader was. Read while rendering, before a new list tells its own top.
  const shownAs = useRef(view);
  const { top } = memory;
  useEffect(() => {
    if (shownAs.current === view) return;
    shownAs.current = view;
    const sequence = selected ?? top;
    if (memory.following === false && sequence !== null)
      arrive(sequence, selected === null ? "start" : "center", source, control);
  }, [view, selected, top, memory, source, control]);
}
