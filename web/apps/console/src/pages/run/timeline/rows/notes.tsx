// Rows that are a line: steps of the lifecycle, words of people, the runtime, gaps, and what cannot be read.
import type { Row } from "@runyard/react";
import { plural, t } from "../../../../i18n";
import { told } from "../../../../i18n/known";
import { durationText, failureTitle, stateText, type Failed } from "../../../../ui";
import { degradedText, isNotice, rowName, whoText } from "../../words";
import type { ContentProps } from "./index";
import { Prose } from "./message";

/** The run entered a state. */
export function LifecycleRow({ row }: ContentProps<"lifecycle">) {
  const failed = failedOf(row);
  return (
    <div className="line">
      <span className="kind">{row.state === "failed" ? t("run.failedRow") : stateText(row.state)}</span>
      {failed !== undefined && (
        <>
          <span className="code">{failed.code}</span>
          <span className="trunc muted">{failureTitle(failed)}</span>
        </>
      )}
    </div>
  );
}

/** What the event says that went wrong: also one that ended the run without a failure has a code. */
function failedOf(row: Row): Failed | undefined {
  const payload: Partial<Record<keyof Failed, unknown>> = Object(row.events.at(-1)?.payload);
  const text = (name: keyof Failed): string | undefined => (typeof payload[name] === "string" ? payload[name] : undefined);
  const code = text("code");
  return code === undefined ? undefined : { code, failureKind: text("failureKind"), cause: text("cause") };
}

/** A person's word to the run. */
export function CommandRow({ row, open, onToggle }: ContentProps<"command">) {
  const { text, actor } = row.command;
  return (
    <div>
      <div className="line">
        <span className="kind">{rowName(row)}</span>
        <span className="muted">{t("run.by", { who: whoText(actor) })}</span>
        {row.unheard && <span className="muted">· {t("run.onItsWay")}</span>}
      </div>
      {text !== undefined && <Prose text={text} open={open} onToggle={() => onToggle(row.key)} />}
    </div>
  );
}

/** The agent has a word; which one is not here. */
export function HeardRow() {
  return (
    <div className="line">
      <span className="kind">{t("run.row.heard")}</span>
    </div>
  );
}

/** Somebody cancels while something is applied. */
export function CancellingRow({ row, open, onToggle }: ContentProps<"cancelling">) {
  const { by, reason } = row.requested;
  return (
    <div>
      <div className="line">
        <span className="kind">{rowName(row)}</span>
        <span className="trunc">{t("run.cancellingMeans")}</span>
        <span className="muted">{t("run.by", { who: whoText(by) })}</span>
      </div>
      <Prose text={reason} open={open} onToggle={() => onToggle(row.key)} />
    </div>
  );
}

/** What the backend says of itself, and what went wrong in it. */
export function RuntimeRow({ row }: ContentProps<"runtime">) {
  const { status, died, error } = row;
  const wrong = error ?? died;
  const notice = error !== undefined && isNotice(error);
  if (wrong !== undefined) {
    return (
      <div>
        <div className="line">
          <span className="kind">{rowName(row)}</span>
          {error?.failureKind !== undefined && <span className="code">{error.failureKind}</span>}
          {error?.retrying === true && <span className="muted">{t("run.retrying")}</span>}
        </div>
        <p className={notice ? "prose" : "note"}>{told(wrong.message)}</p>
      </div>
    );
  }
  const facts = [status?.phase, status?.model, status?.version, status?.thread].filter((fact) => fact !== undefined);
  return (
    <div className="line">
      <span className="kind">{t("run.row.runtime")}</span>
      <span className="trunc">{facts.join(" · ")}</span>
    </div>
  );
}

/** Which secrets the run was given, by name. */
export function SecretsRow({ row }: ContentProps<"secrets">) {
  const { profile, keys, how } = row.secrets;
  return (
    <div className="line">
      <span className="kind">{t("run.row.secrets")}</span>
      <code className="trunc">{keys.map((key) => `${profile}/${key}`).join(", ")}</code>
      <span>{t(`run.projected.${how}`)}</span>
    </div>
  );
}

/** The conversation so far was recorded. */
export function ThreadRow() {
  return (
    <div className="line">
      <span className="kind">{t("run.row.thread")}</span>
    </div>
  );
}

/** Something that is usually relied on is missing. */
export function DegradedRow({ row }: ContentProps<"degraded">) {
  return (
    <div className="line">
      <span className="kind">{t("run.row.degraded")}</span>
      <span className="trunc muted" title={degradedText(row.reason)}>
        {degradedText(row.reason)}
      </span>
    </div>
  );
}

/** Time in which nothing was recorded. */
export function GapRow({ row }: ContentProps<"gap">) {
  return (
    <div className="line">{t(row.waiting === "person" ? "run.gapPerson" : "run.gapAgent", { time: durationText(row.ms) })}</div>
  );
}

/** Events that could not be fetched. */
export function MissingRow({ row }: ContentProps<"missing">) {
  const count = row.to - row.from + 1;
  return (
    <div className="line">
      <span className="kind">{t("run.row.missing")}</span>
      <span className="trunc muted">{plural(count, "run.missingOne", "run.missingMany", { from: row.from, to: row.to })}</span>
    </div>
  );
}

/** An event type of a later version. */
export function UnknownRow({ row }: ContentProps<"unknown">) {
  return (
    <div className="line">
      <code className="trunc">{row.type}</code>
      <span>{t("run.unknownType")}</span>
    </div>
  );
}
