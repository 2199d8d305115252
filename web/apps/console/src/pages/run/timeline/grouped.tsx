// The grouped rows: compact, or with everything.
import type { Row } from "@runyard/react";
import { useCallback, useEffect, useState, type Dispatch, type ReactNode, type RefObject, type SetStateAction } from "react";
import type { RunPlace } from "../location";
import type { ShownRun } from "../run-context";
import { anchorOf } from "../words";
import type { Source } from "./index";
import { FeedList, timelineLabel, type ListControl } from "./list";
import { EventRow, StickyTurn } from "./row";
import { ShownRows } from "./shown";

/** What both ways to show a timeline are given. */
export interface TimelineProps {
  run: ShownRun;
  place: RunPlace;
  control: RefObject<ListControl | null>;
  source: RefObject<Source | null>;
  followAtStart: boolean;
  onFollow: (following: boolean) => void;
  /** Told the first event in view. */
  onTop: (sequence: number) => void;
  /** How many there are; -1 while that still grows. */
  total: number | undefined;
  footer: ReactNode;
}

interface GroupedProps extends TimelineProps {
  /** Everything, or without noise. */
  all: boolean;
  /** The rows that are open, by their keys. */
  open: ReadonlySet<string>;
  setOpen: Dispatch<SetStateAction<ReadonlySet<string>>>;
}

/** Rows, one for each thing that happened. */
export function GroupedRows({
  run,
  place,
  control,
  source,
  followAtStart,
  onFollow,
  onTop,
  total,
  footer,
  all,
  open,
  setOpen,
}: GroupedProps) {
  const [shown] = useState(() => new ShownRows(all));
  shown.update(run.snapshot.view.rows);
  const { select, selected } = place;
  const onToggle = useCallback((key: string) => setOpen((now) => toggled(now, key)), [setOpen]);
  const chosen = selected === null ? undefined : shown.positionOf(selected);
  useEffect(() => {
    source.current = {
      get count() {
        return shown.length;
      },
      positionOf: (sequence) => shown.positionOf(sequence),
      near: (sequence) => shown.near(sequence),
      sequenceAt: (position) => anchorOf(shown.at(position)),
      toggle: (position) => onToggle(shown.at(position).key),
    };
  }, [source, shown, onToggle]);
  const keyOf = useCallback((position: number) => shown.at(position).key, [shown]);
  const estimate = useCallback((position: number) => estimated(shown.at(position)), [shown]);
  const positionOfKey = useCallback((key: string) => positionByKey(shown, key), [shown]);
  return (
    <FeedList
      count={shown.length}
      keyOf={keyOf}
      estimate={estimate}
      moved={shown.moved}
      positionOfKey={positionOfKey}
      followAtStart={followAtStart}
      label={timelineLabel()}
      control={control}
      onFollow={onFollow}
      onTop={(position) => {
        if (position < shown.length) onTop(shown.at(position).first);
      }}
      onChoose={(position) => select(anchorOf(shown.at(position)))}
      onOpen={(position) => onToggle(shown.at(position).key)}
      footer={footer}
      sticky={(position) => {
        const turn = position < shown.length ? shown.turnOver(position) : undefined;
        return <StickyTurn row={turn} until={turn === undefined ? undefined : shown.turnAfter(position)} />;
      }}
      row={(position, measure) => {
        const row = shown.at(position);
        return (
          <EventRow
            key={row.key}
            runId={run.id}
            row={row}
            position={position}
            total={total ?? shown.length}
            selected={position === chosen}
            open={open.has(row.key)}
            until={row.kind === "turn" ? shown.turnAfter(position) : undefined}
            measure={measure}
            onSelect={select}
            onToggle={onToggle}
          />
        );
      }}
    />
  );
}

function toggled(set: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

function positionByKey(shown: ShownRows, key: string): number | undefined {
  for (let position = 0; position < shown.length; position += 1) if (shown.at(position).key === key) return position;
  return undefined;
}

const LINE_PX = 20;
const LINE_CHARS = 66;

/** About how high a row will be; it is measured when it is seen. */
function estimated(row: Row): number {
  switch (row.kind) {
    case "turn":
      return 39;
    case "message":
      return 10 + LINE_PX * Math.min(16, Math.ceil(row.text.length / LINE_CHARS));
    case "approval":
      return row.asked || row.approval.resolution === null ? 30 : 46;
    case "gap":
      return 24;
    default:
      return 30;
  }
}
