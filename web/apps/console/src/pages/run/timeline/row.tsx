// One row of the timeline: time, icon, what happened, how long, number. Rendered again only when the row itself is another.
import type { Row } from "@runyard/react";
import { memo, type MouseEvent } from "react";
import { t, useLanguage } from "../../../i18n";
import { absoluteText, clockText, Icon, type IconName } from "../../../ui";
import { SeqLink } from "../seq-link";
import { anchorOf, isNotice, rowDuration, rowName, timeOf } from "../words";
import { RowContent } from "./rows";
import { TurnHeading } from "./rows/turn";

/** What a row is given. The functions stay the same for as long as the timeline is shown. */
export interface RowProps {
  runId: string;
  row: Row;
  /** Its place among those that are shown. */
  position: number;
  /** How many there are; -1 while that still grows. */
  total: number;
  selected: boolean;
  open: boolean;
  /** Where the next turn begins, for a heading. */
  until?: number | undefined;
  measure: (element: HTMLElement | null) => void;
  onSelect: (sequence: number) => void;
  onToggle: (key: string) => void;
}

/** A row. */
export const EventRow = memo(function EventRow(props: RowProps) {
  const { runId, row, position, total, selected, measure, onSelect } = props;
  useLanguage();
  const heading = row.kind === "turn";
  const look = lookOf(row);
  const choose = (event: MouseEvent<HTMLElement>): void => {
    if (event.target instanceof Element && event.target.closest("a, pre, [data-quiet]")) return;
    if (String(window.getSelection() ?? "") !== "") return;
    onSelect(anchorOf(row));
  };
  return (
    <article
      ref={measure}
      className={`${heading ? "grp" : `ev${look.tone === "" ? "" : ` ev--${look.tone}`}`}${selected ? " is-sel" : ""}`}
      data-index={position}
      data-kind={row.kind}
      data-seq={row.last}
      aria-current={selected ? "true" : undefined}
      aria-posinset={position + 1}
      aria-setsize={total}
      aria-label={t("run.rowLabel", { name: rowName(row), time: clockText(timeOf(row)), sequence: anchorOf(row) })}
      tabIndex={-1}
      onClick={choose}
    >
      {heading ? <TurnHeading row={row} until={props.until} /> : <Cells {...props} icon={look.icon} runId={runId} />}
    </article>
  );
});

function Cells({ runId, row, open, onToggle, icon }: RowProps & { icon: IconName }) {
  const isGap = row.kind === "gap";
  return (
    <>
      {isGap ? (
        <time />
      ) : (
        <time dateTime={timeOf(row)} title={absoluteText(timeOf(row))}>
          {clockText(timeOf(row))}
        </time>
      )}
      <Icon name={icon} className="ico" />
      <RowContent runId={runId} row={row} open={open} onToggle={onToggle} />
      <span className="meta">
        {row.kind === "approval" && row.approval.resolution === null ? t("run.waiting") : rowDuration(row)}
        {!isGap && <SeqLink id={runId} sequence={anchorOf(row)} />}
      </span>
    </>
  );
}

/** A heading that stays in view while its turn is read. It repeats what the list says, so it is not read out. */
export function StickyTurn({ row, until }: { row: Row | undefined; until: number | undefined }) {
  return (
    <div className="tl__sticky" aria-hidden="true">
      {row?.kind === "turn" && (
        <div className="grp">
          <TurnHeading row={row} until={until} />
        </div>
      )}
    </div>
  );
}

type Tone = "" | "quiet" | "err" | "warn" | "ask" | "gap" | "who";

function lookOf(row: Row): { icon: IconName; tone: Tone } {
  switch (row.kind) {
    case "turn":
    case "message":
      return { icon: "message", tone: "" };
    case "reasoning":
      return { icon: "comment", tone: "quiet" };
    case "plan":
      return { icon: "runs", tone: "" };
    case "tool":
      return {
        icon: row.result?.outcome === "denied" ? "lock" : row.call.tool === "shell" ? "terminal" : "dev",
        tone: row.result?.outcome === "denied" ? "err" : "",
      };
    case "read":
      return { icon: "file", tone: "quiet" };
    case "patch":
    case "diff":
      return { icon: "patch", tone: "" };
    case "approval":
      return { icon: "needs_approval", tone: row.approval.resolution === null ? "ask" : "" };
    case "judged":
      return row.judged.effect === "deny" ? { icon: "lock", tone: "err" } : { icon: "shield", tone: "quiet" };
    case "command":
      return { icon: "needs_approval", tone: "who" };
    case "heard":
      return { icon: "message", tone: "quiet" };
    case "cancelling":
      return { icon: "cancelled", tone: "who" };
    case "artifact":
      return { icon: "preparing", tone: "" };
    case "preview":
      return { icon: "eye", tone: "" };
    case "lifecycle":
      return {
        icon: row.state,
        tone:
          row.state === "failed"
            ? "err"
            : row.state === "completed" || row.state === "cancelled" || row.state === "applying"
              ? ""
              : "quiet",
      };
    case "runtime":
      if (row.died === undefined && row.error === undefined) return { icon: "agent", tone: "quiet" };
      return row.error !== undefined && isNotice(row.error) ? { icon: "agent", tone: "" } : { icon: "degraded", tone: "err" };
    case "thread":
      return { icon: "message", tone: "quiet" };
    case "secrets":
      return { icon: "lock", tone: "quiet" };
    case "degraded":
      return { icon: "degraded", tone: "warn" };
    case "gap":
      return { icon: "clock", tone: "gap" };
    case "missing":
      return { icon: "question", tone: "warn" };
    case "unknown":
      return { icon: "question", tone: "quiet" };
  }
}
