// Every event as it is stored.
import type { RunEvent } from "@runyard/react";
import { memo, useCallback, useEffect, useState } from "react";
import { t, useLanguage } from "../../../i18n";
import { clockText, visible } from "../../../ui";
import { SeqLink } from "../seq-link";
import { EventList } from "./events";
import type { TimelineProps } from "./grouped";
import { FeedList, timelineLabel } from "./list";
import { bounded } from "./rows/tool";

const JSON_CHARS_MAX = 20_000;

/** The events of a run, raw. */
export function RawEvents({ run, place, control, source, followAtStart, onFollow, onTop, total, footer }: TimelineProps) {
  const [events] = useState(() => new EventList());
  events.update(run.snapshot.view.rows);
  const [open, setOpen] = useState<ReadonlySet<number>>(() => new Set());
  const onToggle = useCallback((sequence: number) => {
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(sequence)) next.add(sequence);
      return next;
    });
  }, []);
  useEffect(() => {
    source.current = {
      get count() {
        return events.length;
      },
      positionOf: (sequence) => events.positionOf(sequence),
      near: (sequence) => events.positionOf(sequence),
      sequenceAt: (position) => events.at(position).sequence,
      toggle: (position) => onToggle(events.at(position).sequence),
    };
  }, [source, events, onToggle]);
  const keyOf = useCallback((position: number) => events.at(position).id, [events]);
  const positionOfKey = useCallback(() => undefined, []);
  return (
    <FeedList
      count={events.length}
      keyOf={keyOf}
      estimate={rawEstimate}
      moved={0}
      positionOfKey={positionOfKey}
      followAtStart={followAtStart}
      label={timelineLabel()}
      control={control}
      onFollow={onFollow}
      onTop={(position) => {
        if (position < events.length) onTop(events.at(position).sequence);
      }}
      onChoose={(position) => place.select(events.at(position).sequence)}
      onOpen={(position) => onToggle(events.at(position).sequence)}
      footer={footer}
      row={(position, measure) => {
        const event = events.at(position);
        return (
          <RawEvent
            key={event.id}
            runId={run.id}
            event={event}
            position={position}
            total={total ?? events.length}
            selected={event.sequence === place.selected}
            open={open.has(event.sequence)}
            measure={measure}
            onSelect={place.select}
            onToggle={onToggle}
          />
        );
      }}
    />
  );
}

function rawEstimate(): number {
  return 30;
}

interface RawProps {
  runId: string;
  event: RunEvent;
  position: number;
  total: number;
  selected: boolean;
  open: boolean;
  measure: (element: HTMLElement | null) => void;
  onSelect: (sequence: number) => void;
  onToggle: (sequence: number) => void;
}

const RawEvent = memo(function RawEvent({
  runId,
  event,
  position,
  total,
  selected,
  open,
  measure,
  onSelect,
  onToggle,
}: RawProps) {
  useLanguage();
  return (
    <article
      ref={measure}
      className={`ev ev--raw${selected ? " is-sel" : ""}`}
      aria-current={selected ? "true" : undefined}
      data-index={position}
      data-seq={event.sequence}
      aria-posinset={position + 1}
      aria-setsize={total}
      aria-label={t("run.rowLabel", { name: event.type, time: clockText(event.timestamp), sequence: event.sequence })}
      tabIndex={-1}
      onClick={() => onSelect(event.sequence)}
    >
      <time dateTime={event.timestamp}>{clockText(event.timestamp)}</time>
      <div>
        <button type="button" className="line line--fold" aria-expanded={open} onClick={() => onToggle(event.sequence)}>
          <code className="kind">{event.type}</code>
          {!open && <code className="trunc muted">{visible(JSON.stringify(event.payload).slice(0, 240))}</code>}
        </button>
        {open && (
          <pre className="block out" tabIndex={0} role="group" aria-label={event.type}>
            {visible(bounded(JSON.stringify(event, null, 2), JSON_CHARS_MAX))}
          </pre>
        )}
      </div>
      <span className="meta">
        <SeqLink id={runId} sequence={event.sequence} />
      </span>
    </article>
  );
});
