// Entries in a table, the newest first. Only the rows that are seen are in the page.
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { Clock, Icon, visible } from "../../ui";
import { actorOf, runOf, shortHash, typeText, whatText, type Entry } from "./entries";

const ROW_PX = 34;
const NARROW_ROW_PX = 62;

/** The entries; one of them can be chosen. */
export function EntryTable({ entries, selected, onSelect, label, about }: {
  entries: readonly Entry[];
  /** What an entry's approval was about, where the page knows it. Such a page is about one run, which needs no naming. */
  about?: (entry: Entry) => string | undefined;
  selected?: number | undefined;
  onSelect?: (sequence: number | undefined) => void;
  label: string;
}) {
  useLanguage();
  const scroller = useRef<HTMLDivElement>(null);
  const narrow = window.matchMedia("(max-width: 720px)").matches;
  const rows = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (narrow ? NARROW_ROW_PX : ROW_PX),
    overscan: 12,
  });
  return (
    <div className="entries" role="table" aria-label={label} aria-rowcount={entries.length + 1}>
      <div className="entries__body scroll" ref={scroller} role="rowgroup" tabIndex={0} aria-label={label}>
        {/* Inside what scrolls: its columns are those of the rows, with a scrollbar and without. */}
        <div className="entry entry--head" role="row">
          <span role="columnheader">{t("audit.sequence")}</span>
          <span role="columnheader">{t("audit.when")}</span>
          <span role="columnheader">{t("audit.who")}</span>
          <span role="columnheader">{t("audit.what")}</span>
          <span role="columnheader">{t("audit.detail")}</span>
          <span role="columnheader">{t("audit.hash")}</span>
        </div>
        <div className="entries__all" role="presentation" style={{ blockSize: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const entry = entries[item.index];
            return (
              entry && (
                <EntryRow
                  key={entry.sequence}
                  entry={entry}
                  index={item.index}
                  top={item.start}
                  selected={entry.sequence === selected}
                  what={whatText(entry, about?.(entry))}
                  run={about ? undefined : runOf(entry)}
                  {...(onSelect && { onSelect })}
                />
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

function EntryRow({ entry, index, top, selected, what, run, onSelect }: {
  entry: Entry;
  index: number;
  top: number;
  selected: boolean;
  what: string;
  run: string | undefined;
  onSelect?: (sequence: number | undefined) => void;
}) {
  const actor = actorOf(entry);
  return (
    <div
      className={`entry${selected ? " is-sel" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={onSelect ? selected : undefined}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => onSelect?.(selected ? undefined : entry.sequence)}
    >
      <span role="cell" className="num">
        {onSelect ? (
          <button
            type="button"
            className="linkish"
            aria-expanded={selected}
            aria-label={t("audit.open", { sequence: entry.sequence })}
          >
            #{entry.sequence}
          </button>
        ) : (
          `#${entry.sequence}`
        )}
      </span>
      <span role="cell">
        <Clock at={entry.at} day />
      </span>
      <span role="cell" className="trunc" title={actor.id}>
        <Icon name={actor.kind === "person" ? "needs_approval" : actor.kind === "agent" ? "agent" : "edge"} small />
        <span className="sr">{actor.kind}</span> {visible(actor.id)}
      </span>
      <span role="cell" className="strong trunc">
        {typeText(entry.type)}
      </span>
      <span role="cell" className="trunc" title={what}>
        {run !== undefined && (
          <Link to="/runs/$id" params={{ id: run }} onClick={(event) => event.stopPropagation()}>
            <code>{run}</code>
          </Link>
        )}{" "}
        <WithIds text={what} />
      </span>
      <span role="cell">
        <code className="muted" title={entry.hash}>
          {shortHash(entry.hash)}
        </code>
      </span>
    </div>
  );
}

/** Ids as they are written everywhere else. */
function WithIds({ text }: { text: string }) {
  const parts = text.split(/\b([a-z]{3}_[0-9a-z]{32})\b/);
  return parts.map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>));
}
