// The head of a run: what, which, how it stands, since when. State and last event are always in view.
import type { RunView } from "@runyard/react";
import { memo } from "react";
import { t, useLanguage } from "../../i18n";
import { Ago, Clock, Copy, Cost, DegradedFlag, Elapsed, LiveBadge, PageTitle, spanText, StatePill, Tokens } from "../../ui";
import { RunActions } from "./actions";
import { isEnded } from "./lifecycle";
import type { Reading, ShownRun } from "./run-context";
import { SeqLink } from "./seq-link";
import { degradedText, firstLine, runTitle, shortRun } from "./words";

/** Title, actions and facts. */
export function RunHead({ run }: { run: ShownRun }) {
  useLanguage();
  const { view, link } = run.snapshot;
  const { reading } = run;
  const task = runTitle(view);
  return (
    <>
      <div className="head__top">
        <div className="head__title">
          <PageTitle className="trunc" name={task === "" ? run.id : task}>
            {task === "" ? run.id : firstLine(task)}
          </PageTitle>
          {task !== "" && (
            <>
              <span className="mono muted runid">{shortRun(run.id)}</span>
              <Copy text={run.id} label={t("run.copyId")} />
            </>
          )}
        </div>
        <RunActions run={run} />
      </div>
      <div className="factsrow">
        <div className="facts">
          <StatePill state={reading === null ? view.state : "unknown"} />
          {reading === null ? <LastEvent id={run.id} at={view.lastAt} sequence={view.lastSequence} /> : <ReadSoFar reading={reading} />}
        </div>
        <div className="facts facts--more">
          <span className="fact fact--elapsed">
            <span className="k">{t("run.elapsed")}</span>
            <span className="v">
              {reading === null ? <RunTime view={view} /> : "–"}
            </span>
          </span>
          <Spent usage={reading === null ? view.usage : null} />
          {reading !== null && link.kind === "live" ? <ReadingBadge /> : <LiveBadge link={link} />}
          {view.degraded.length > 0 && <DegradedFlag reasons={view.degraded.map(({ reason }) => degradedText(reason))} />}
        </div>
      </div>
    </>
  );
}

/** Stands where the last event stands as long as nobody knows which that is. */
function ReadSoFar({ reading: { at, of } }: { reading: Reading }) {
  return (
    <span className="fact fact--last" data-read={at}>
      <span className="k">{t("run.lastEvent")}</span>
      <span className="v num">{of === null ? t("run.reading") : t("run.readingOf", { at, of })}</span>
    </span>
  );
}

/** Events come, and they are not what happens now. */
function ReadingBadge() {
  return (
    <span className="live live--off" data-link="reading">
      <i />
      {t("run.reading")}
    </span>
  );
}

const LastEvent = memo(function LastEvent({ id, at, sequence }: { id: string; at: string | null; sequence: number }) {
  useLanguage();
  return (
    <span className="fact fact--last">
      <span className="k">{t("run.lastEvent")}</span>
      <span className="v">
        {at === null ? (
          "–"
        ) : (
          <>
            <Clock at={at} />{" "}
            <span className="muted">
              <SeqLink id={id} sequence={sequence} /> · <Ago at={at} />
            </span>
          </>
        )}
      </span>
    </span>
  );
});

function RunTime({ view }: { view: RunView }) {
  if (view.createdAt === null || view.lastAt === null) return "–";
  if (isEnded(view.state)) return spanText(Date.parse(view.lastAt) - Date.parse(view.createdAt));
  return <Elapsed since={view.createdAt} />;
}

function Spent({ usage }: { usage: RunView["usage"] }) {
  const known = usage !== null && (usage.inputTokens !== null || usage.outputTokens !== null);
  return (
    <span className="fact fact--cost">
      <span className="k">{t("run.cost")}</span>
      <span className="v">
        <Cost usd={usage?.costUsd} />
        {known && (
          <span className="muted">
            {" · "}
            <Tokens tokens={(usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)} />
          </span>
        )}
      </span>
    </span>
  );
}
