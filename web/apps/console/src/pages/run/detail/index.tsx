// What the chosen row is. Without one: the task in full and what the agent said last.
import type { Row, RunView } from "@runyard/react";
import { useLanguage, t } from "../../../i18n";
import { absoluteText, Block, Button, clockText, Copy, KeyValue, visible } from "../../../ui";
import { Markdown } from "../../../ui/markdown";
import { permalink, type RunPlace } from "../location";
import type { ShownRun } from "../run-context";
import { bounded } from "../timeline/rows/tool";
import { anchorOf, rowName, taskText, tookText, whoText } from "../words";
import { DetailContent } from "./content";

const JSON_CHARS_MAX = 40_000;
const EVENTS_MAX = 20;

/** The detail of a run's page. */
export function Detail({ run, place }: { run: ShownRun; place: RunPlace }) {
  useLanguage();
  const { rows } = run.snapshot.view;
  const index = place.selected === null ? -1 : rows.indexOf(place.selected);
  const row = index === -1 ? undefined : rows.at(index);
  return (
    <section className="detail scroll" aria-label={t("run.detail")} tabIndex={0} data-open={row !== undefined || undefined}>
      {row === undefined ? <Overview run={run} /> : <RowDetail run={run} row={row} onClose={() => place.select(null)} />}
    </section>
  );
}

function RowDetail({ run, row, onClose }: { run: ShownRun; row: Row; onClose: () => void }) {
  const type = row.events[0]?.type ?? row.kind;
  const span = row.first === row.last ? `#${row.first}` : `#${row.first}–#${row.last}`;
  return (
    <>
      <div className="detail__head">
        <h2 className="trunc">{rowName(row)}</h2>
        <span className="muted mono t12 trunc">
          {type} {span}
        </span>
        <span className="grow" />
        <Copy text={() => permalink(run.id, anchorOf(row))} label={t("run.copyLink")} />
        <Button kind="ghost" icon="x" label={t("common.close")} onClick={onClose} />
      </div>
      <DetailContent run={run} row={row} />
      <section className="sec">
        <KeyValue
          pairs={[
            [
              t("run.started"),
              <time key="at" dateTime={row.at}>
                {absoluteText(row.at)}
              </time>,
            ],
            [t("run.took"), row.first === row.last ? undefined : tookText(row)],
          ]}
        />
      </section>
      <Raw row={row} />
    </>
  );
}

function Raw({ row }: { row: Row }) {
  if (row.events.length === 0) return null;
  const shown = row.events.slice(0, EVENTS_MAX);
  const text = JSON.stringify(shown.length === 1 ? shown[0] : shown, null, 2);
  return (
    <section className="sec">
      <h2>
        {row.events.length === 1 ? t("run.event") : t("run.events", { count: row.events.length })}
        <Copy text={() => JSON.stringify(row.events, null, 2)} label={t("run.copyJson")} />
      </h2>
      <details className="raw">
        <summary>{t("run.showJson")}</summary>
        <Block label={t("run.event")}>{visible(bounded(text, JSON_CHARS_MAX))}</Block>
        {row.events.length > EVENTS_MAX && (
          <p className="t12 muted">{t("run.andMore", { count: row.events.length - EVENTS_MAX })}</p>
        )}
      </details>
    </section>
  );
}

function Overview({ run }: { run: ShownRun }) {
  const { view } = run.snapshot;
  const said = lastSaid(view);
  return (
    <>
      <div className="detail__head">
        <h2>{t("run.taskTitle")}</h2>
        {view.actor !== null && view.createdAt !== null && (
          <span className="muted t12">{t("run.askedBy", { who: whoText(view.actor), time: clockText(view.createdAt) })}</span>
        )}
      </div>
      {view.task === null ? (
        <p className="muted">{view.lastSequence === 0 ? "" : t("run.taskUnknown")}</p>
      ) : (
        <>
          <Markdown className="prose" text={taskText(view.task)} />
          {view.task.kind === "action" && (
            <Block label={t("run.input")}>{visible(JSON.stringify(view.task.input, null, 2))}</Block>
          )}
          {view.task.kind === "text" && view.task.redacted && <p className="t12 muted">{t("run.taskRedacted")}</p>}
          <p className="t12 muted hint">{t("run.selectHint")}</p>
        </>
      )}
      {said !== undefined && (
        <section className="sec">
          <h2>{t("run.lastSaid")}</h2>
          <Markdown className="prose" text={said} />
        </section>
      )}
    </>
  );
}

const LOOK_BACK_MAX = 300;

function lastSaid({ rows, completed }: RunView): string | undefined {
  if (completed !== null && completed.response !== "") return completed.response;
  for (let index = rows.length - 1; index >= Math.max(0, rows.length - LOOK_BACK_MAX); index -= 1) {
    const row = rows.at(index);
    if (row.kind === "message" && row.complete && row.brokeOff === undefined) return row.text;
  }
  return undefined;
}
