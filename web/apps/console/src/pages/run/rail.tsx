// Where a run is: its steps with their evidence, where its time went, and what it runs on.
import { timeUntil, type RunView } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { memo, useState, type ReactNode } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { told } from "../../i18n/known";
import { clockText, costText, Icon, KeyValue, StateIcon, stateText, tokensText, useNow, visible, spanText } from "../../ui";
import { stepsOf, type Step } from "./lifecycle";
import { modelOf } from "./model";
import type { ShownRun } from "./run-context";
import { SeqLink } from "./seq-link";
import { baseText, sandboxText, shortRun, whoText } from "./words";

/** The rail at the left of a wide window. */
export function Rail({ run }: { run: ShownRun }) {
  useLanguage();
  const { view } = run.snapshot;
  const { reading } = run;
  const [all, setAll] = useState(false);
  return (
    <aside className="rail scroll" aria-label={t("run.lifecycle")} tabIndex={0}>
      <h2>{t("run.lifecycle")}</h2>
      <ol className="steps">
        {stepsRead(run, all).map((step, index) => (
          <RailStep key={index} step={step} id={run.id} note={noteOf(step, view)} onUnfold={() => setAll(true)} />
        ))}
      </ol>
      <TimeSection view={view} over={reading !== null} />
      <RunSection run={run} />
    </aside>
  );
}

function RailStep({ step, id, note, onUnfold }: { step: Step; id: string; note: string; onUnfold: () => void }) {
  if (step.when === "folded") {
    return (
      <li className="done">
        <span className="dot">
          <Icon name="more" />
        </span>
        <button type="button" className="linkish" onClick={onUnfold}>
          {t("run.stepsFolded", { count: step.count })}
        </button>
      </li>
    );
  }
  return (
    <li className={`${step.when} st-${step.state}`} aria-current={step.when === "now" ? "step" : undefined}>
      <span className="dot">{step.when === "done" ? <Icon name="completed" /> : <StateIcon state={step.state} />}</span>
      <div>
        <b>
          {stateText(step.state)}
          {step.when !== "next" && <time dateTime={step.at}>{clockText(step.at)}</time>}
        </b>
        <small className="trunc">
          {step.when !== "next" && <SeqLink id={id} sequence={step.sequence} />} {note}
        </small>
      </div>
    </li>
  );
}

function noteOf(step: Step, view: RunView): string {
  if (step.when === "folded") return "";
  if (step.when === "next") return step.why === "usual" ? "" : t(`run.next.${step.why}`);
  switch (step.state) {
    case "created":
      return view.actor === null ? "" : t("run.by", { who: whoText(view.actor) });
    case "planned":
    case "accepted":
      return view.edgeId ?? "";
    case "running":
      return step.when === "now" ? plural(view.turns, "run.turnOne", "run.turnMany") : "";
    case "needs_approval":
      return step.when === "now" ? t("run.openCount", { count: view.open.length }) : "";
    case "failed":
      return view.failure?.code ?? "";
    case "cancelled":
      return view.cancelled === null ? "" : t("run.by", { who: whoText(view.cancelled.by) });
    default:
      return "";
  }
}

/** The steps; while the past is read none of them is the present one. */
function stepsRead({ snapshot, reading }: ShownRun, all = false): Step[] {
  const steps = stepsOf(snapshot.view, all);
  if (reading === null) return steps;
  return steps.filter(({ when }) => when !== "next").map((step) => (step.when === "now" ? { ...step, when: "done" } : step));
}

/** The steps in one line, for narrower windows. */
export const Strip = memo(function Strip({ run }: { run: ShownRun }) {
  useLanguage();
  const steps = stepsRead(run).filter((step) => step.when !== "folded");
  return (
    <div className="strip" tabIndex={0} role="group" aria-label={t("run.lifecycle")}>
      {steps.map((step, index) => (
        <span key={index} className={`${step.when} st-${step.state}`} aria-current={step.when === "now" ? "step" : undefined}>
          {step.when === "done" ? <Icon name="completed" small /> : <StateIcon state={step.state} small />}
          <em>{stateText(step.state)}</em>
        </span>
      ))}
    </div>
  );
});

/** Where the time went, up to now or `over` a past that is being read. */
function TimeSection({ view, over }: { view: RunView; over: boolean }) {
  const now = useNow();
  const time = over ? view.time : timeUntil(view, now);
  const total = Math.max(1, time.workingMs + time.waitingMs + time.preparingMs);
  const share = (ms: number): { inlineSize: string } => ({ inlineSize: `${(100 * ms) / total}%` });
  const parts = [
    `${t("run.working")} ${spanText(time.workingMs)}`,
    `${t("run.waitingForPerson")} ${spanText(time.waitingMs)}`,
    `${t("run.preparing")} ${spanText(time.preparingMs)}`,
  ];
  return (
    <section className="sec">
      <h2>{t("run.time")}</h2>
      <div className="bar" role="img" aria-label={parts.join(", ")}>
        <i className="p" style={share(time.preparingMs)} />
        <i style={share(time.workingMs)} />
        <i className="w" style={share(time.waitingMs)} />
      </div>
      <dl className="kv kv--end">
        <dt>{t("run.working")}</dt>
        <dd>
          <span className="num">{spanText(time.workingMs)}</span>
        </dd>
        <dt>{t("run.waitingForPerson")}</dt>
        <dd>
          <span className="num">{spanText(time.waitingMs)}</span>
        </dd>
        <dt>{t("run.preparing")}</dt>
        <dd>
          <span className="num">{spanText(time.preparingMs)}</span>
        </dd>
      </dl>
    </section>
  );
}

/** What the run runs on. */
export function RunSection({ run }: { run: ShownRun }) {
  const { view } = run.snapshot;
  const policy = view.executionPolicy;
  const ran = modelOf(view);
  const checks = view.started?.checks;
  // What every run has keeps its place from the first moment; what wraps comes after it, and what only some have at the end.
  const pairs: (readonly [string, ReactNode])[] = [
    [t("run.agent"), line(view.agentId)],
    [t("run.workspace"), line(view.workspace?.label)],
    [t("run.network"), line(policy === null ? undefined : t(`run.networkWord.${policy.network}`))],
    [t("run.backend"), line(view.backendProfile)],
    [t("run.model"), line(ran.length === 0 ? undefined : ran.join(", "))],
    [t("run.session"), line(view.sessionId === null ? undefined : shortRun(view.sessionId), view.sessionId)],
    [t("run.sandbox"), words(sandboxText(view), checks?.["sandbox"])],
    [t("run.base"), words(baseText(view), view.review?.diff.base ?? checks?.["checkout"])],
    [t("run.budget"), budgetText(view)],
    [view.carries === null ? t("run.parent") : t(view.carries.undo === true ? "run.takesBack" : "run.applies"), parentOf(view)],
  ];
  return (
    <section className="sec">
      <h2>{t("run.about")}</h2>
      <KeyValue pairs={pairs} />
    </section>
  );
}

/** One line, however long the fact is; all of it is its title. */
function line(text: string | null | undefined, whole: string | null | undefined = text): ReactNode {
  return (
    <span className="trunc block1" title={whole == null ? undefined : visible(whole)}>
      {text == null ? "–" : visible(text)}
    </span>
  );
}

/** Words that wrap; what was recorded is their title. */
function words(text: string | undefined, whole: string | undefined): ReactNode {
  return <span title={whole === undefined ? undefined : visible(told(whole))}>{text === undefined ? "–" : visible(text)}</span>;
}

function parentOf(view: RunView): ReactNode {
  const id = view.carries?.of ?? view.parentRunId;
  if (id === null || id === undefined) return undefined;
  return (
    <Link to="/runs/$id" params={{ id }}>
      {shortRun(id)}
    </Link>
  );
}

function budgetText(view: RunView): string | undefined {
  const budget = view.executionPolicy?.budget;
  if (budget?.costUsd !== undefined && budget.costUsd !== null) {
    const used = view.usage?.costUsd;
    const spent = used === null || used === undefined ? "–" : costText(used);
    return t("run.budgetOf", { used: spent, allowed: `$${budget.costUsd}` });
  }
  if (budget?.tokens === undefined || budget.tokens === null) return undefined;
  const used = view.usage === null ? "–" : tokensText((view.usage.inputTokens ?? 0) + (view.usage.outputTokens ?? 0));
  return t("run.budgetTokens", { used, allowed: tokensText(budget.tokens) });
}
