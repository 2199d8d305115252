// What a run asks, at the foot of its right column. The place is always there, so that nothing moves when something is asked.
import { Link } from "@tanstack/react-router";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { told } from "../../i18n/known";
import { Elapsed, Icon, Risk, useNow, useShortcut, visible } from "../../ui";
import { fromEvents, isSnoozed, later, type Asked } from "./asked";
import { useHubsWord, useNewest } from "./decide";
import { DecisionFoot, Outcome, type RunFacts } from "./decision";
import { Exact } from "./exact";
import { Expiry, placeText, targetText } from "./facts";
import { useHeard } from "./heard";
import type { ShownRun } from "../run/run-context";
import { askIcon, effectLabel, headingKey, inWords } from "./label";
import { focusReview, ReviewLink } from "./review-link";

/** So many decisions that were made meanwhile stay in the panel; all of them are in the timeline. */
const DECIDED_SHOWN = 3;

/** The approvals of a run. */
export function ApprovalPanel({ run }: { run: ShownRun }) {
  useLanguage();
  const { view } = run.snapshot;
  const dock = useRef<HTMLElement>(null);
  const heard = useHeard();
  const all = useMemo(
    () => view.approvals.map((entry) => later(fromEvents(entry, run.id), heard.get(entry.approvalId))),
    [view.approvals, run.id, heard],
  );
  const open = all.filter((asked) => asked.state === "open");
  const seen = useSeen(open);
  const decided = all.filter((asked) => asked.state !== "open" && seen.has(asked.id)).slice(-DECIDED_SHOWN);
  useShortcut("a", "approvals.keys.focus", () => focusReview(dock.current), { when: open.length > 0 });
  const facts: RunFacts = { onReject: view.onReject, sessionId: view.sessionId, carries: view.carries !== null };
  if (open.length === 0) {
    return (
      <section className="dock dock--none" aria-label={t("approvals.panel")}>
        <div className="dock__head">
          <span className="muted">{t(run.reading === null ? "approvals.none" : "run.reading")}</span>
          <span className="grow" />
          <Link to="/approvals" className="t12">
            {t("approvals.title")}
          </Link>
        </div>
        <Decided decided={decided} />
      </section>
    );
  }
  return (
    <section
      className="dock"
      aria-label={t("approvals.panel")}
      ref={dock}
      onKeyDown={(event) => moveBetween(event, dock.current)}
    >
      <div className="dock__head">
        <h2>
          <Icon name="needs_approval" />
          {t("approvals.panel")}
        </h2>
        <span className="muted t12">
          {run.reading === null ? plural(open.length, "approvals.waitOne", "approvals.wait") : t("run.reading")}
        </span>
        <span className="grow" />
        <Link to="/approvals" className="t12">
          {t("approvals.title")}
        </Link>
      </div>
      <div className="dock__body scroll">
        {open.map((asked) => (
          <AskCard key={asked.id} asked={asked} facts={facts} past={run.reading !== null} />
        ))}
        {open[1] && <More asked={open[1]} />}
        <Decided decided={decided} />
      </div>
    </section>
  );
}

/** The approvals that were open while this was shown: what becomes of them stays in view. */
function useSeen(open: readonly Asked[]): ReadonlySet<string> {
  const [seen] = useState(() => new Set<string>());
  for (const asked of open) seen.add(asked.id);
  return seen;
}

function Decided({ decided }: { decided: readonly Asked[] }) {
  if (decided.length === 0) return null;
  return (
    <ul className="dock__decided">
      {decided.map((asked) => (
        <li key={asked.id}>
          <p className="trunc t12">
            <LabelText asked={asked} />
          </p>
          <Outcome asked={asked} />
        </li>
      ))}
    </ul>
  );
}

/** What was asked, as the button named it. */
export function LabelText({ asked }: { asked: Asked }) {
  useLanguage();
  if (asked.ask.kind === "question") return <>{visible(asked.ask.prompt)}</>;
  const label = inWords(effectLabel(asked.ask));
  return (
    <>
      {label.text} {label.code !== undefined && <code>{label.code}</code>}
    </>
  );
}

/** What uses the arrows itself. */
const OWN_ARROWS = "input, textarea, select, pre, [role=menu]";

/** Arrows go from one request to the next. Nothing is decided by them. */
function moveBetween(event: KeyboardEvent, dock: Element | null): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const target = event.target;
  if (step === 0 || !dock || !(target instanceof HTMLElement) || target.closest(OWN_ARROWS)) return;
  const cards = [...dock.querySelectorAll(".ask")];
  const next = cards[cards.findIndex((card) => card.contains(target)) + step];
  if (next === undefined) return;
  event.preventDefault();
  focusReview(next);
}

function AskCard({ asked: streamed, facts, past }: { asked: Asked; facts: RunFacts; past: boolean }) {
  const newest = useNewest(streamed);
  const { said, denied } = useHubsWord(newest.id);
  const asked = denied === null ? newest : { ...newest, denied };
  const snoozed = isSnoozed(asked, useNow());
  return (
    <section className="ask" aria-label={t(headingKey(asked.ask))} data-approval={asked.id}>
      <div className="ask__title">
        <h3>{t(headingKey(asked.ask))}</h3>
        <Risk risk={asked.risk} />
        <span className="grow" />
        {asked.askedAt !== null && (
          <span className="muted t12">
            <Elapsed since={asked.askedAt} />
          </span>
        )}
      </div>
      <div className="what">
        <Exact asked={asked} />
        <ReviewLink asked={asked} inRun />
      </div>
      <Bind asked={asked} snoozed={snoozed} />
      <DecisionFoot asked={asked} facts={facts} unread={past ? t("run.refused.reading") : said ? undefined : t("common.loading")} />
    </section>
  );
}

function Bind({ asked, snoozed }: { asked: Asked; snoozed: boolean }) {
  const { ask } = asked;
  return (
    <div className="bind">
      {ask.kind === "apply" ? (
        <>
          <span>
            {t("approvals.facts.to")} <b>{targetText(ask)}</b>
          </span>
          <span className="num">
            <b className="add">+{ask.stats.insertions}</b> <b className="del">−{ask.stats.deletions}</b>
          </span>
        </>
      ) : (
        <span>
          {t("approvals.facts.in")} <b>{placeText(asked)}</b>
        </span>
      )}
      <span>
        {t("approvals.facts.because")} <b>{visible(told(asked.reason))}</b>
      </span>
      <span className="bind__until">
        <Expiry asked={asked} />
      </span>
      {snoozed && <span>{t("approvals.group.snoozed")}</span>}
    </div>
  );
}

/** On short windows and phones one decision is shown at a time; this leads to the others. */
function More({ asked }: { asked: Asked }) {
  return (
    <Link className="more" to="/approvals/$id" params={{ id: asked.id }}>
      <Icon name={askIcon(asked.ask)} />
      <span className="trunc">
        <LabelText asked={asked} />
      </span>
      <span className="muted grow">{asked.askedAt !== null && <Elapsed since={asked.askedAt} />}</span>
      <Icon name="chev" />
    </Link>
  );
}
