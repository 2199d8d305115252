// What failed, in plain words, with its code and what to do next. Nothing here says only that something went wrong.
import type { ReactNode } from "react";
import { useOutlived } from "../app/logins";
import { maybe, t, useLanguage } from "../i18n";
import { CopyButton } from "./copy";
import { diagnostics } from "./diagnostics";
import { Icon } from "./icon";
import { Sentence } from "./text";

/** What an envelope says went wrong. */
export interface Problem {
  code: string;
  message: string;
  issues: readonly { path: readonly (string | number)[]; message: string }[];
}

/** What a failure is known by. The kind of a backend says more than the code, and the cause of our own agent's loop more than both. */
export interface Failed {
  code: string;
  failureKind?: string | undefined;
  cause?: string | undefined;
  /** What to do first as the hub says it: where this page has no words of its own. */
  recovery?: string | undefined;
}

/** The plain title of a failure. A code that is not known stands for itself. */
export function failureTitle(failed: Failed): string {
  return mostExact(failed, "title") ?? t("common.unknownFailure", { code: failed.code });
}

/** What to do first after a failure. */
export function failureNext(failed: Failed): string | undefined {
  return mostExact(failed, "next") ?? failed.recovery;
}

function mostExact({ cause, failureKind, code }: Failed, part: "title" | "next"): string | undefined {
  for (const name of [cause, failureKind, code]) {
    const text = name === undefined ? undefined : maybe(`failures.${name}.${part}`);
    if (text !== undefined) return text;
  }
  return undefined;
}

/** What a failure card takes. */
export interface FailureCardProps extends Failed {
  /** The safe message, as it came. */
  message: string;
  /** More steps than the first one. */
  steps?: readonly ReactNode[];
  /** May be tried again as it is. */
  retryable?: boolean | undefined;
  /** The event that says so. */
  sequence?: number;
  /** What can be done from here. Copying diagnostics is always there. */
  actions?: ReactNode;
  /** Further facts for the diagnostics. */
  facts?: Record<string, string | number | undefined>;
}

/** A failure: title, code, message, next steps, and what can be done. */
export function FailureCard({ message, steps = [], retryable, sequence, actions, facts, ...failed }: FailureCardProps) {
  useLanguage();
  const { code, failureKind, cause } = failed;
  const next = failureNext(failed);
  const kind = failureKind && failureKind !== code ? t("common.failureKind", { kind: failureKind }) : undefined;
  const notes = [kind, retryable === true ? t("common.retryable") : undefined].filter((note) => note !== undefined);
  const todo = next === undefined ? steps : [<Sentence key="next" text={next} />, ...steps];
  return (
    <section className="fail" aria-label={t("common.failure")} data-code={code}>
      <div className="fail__head">
        <Icon name="failed" />
        <div>
          <h2>{failureTitle(failed)}</h2>
          <p className="row fail__code">
            <span className="code">{code}</span>
            {cause !== undefined && (
              <span className="muted t12">
                {t("common.cause")} <span className="code">{cause}</span>
              </span>
            )}
            {notes.length > 0 && <span className="muted t12">{notes.join(" · ")}</span>}
            {sequence !== undefined && <a href={`#seq=${sequence}`} className="t12">{`#${sequence}`}</a>}
          </p>
        </div>
      </div>
      <div className="fail__body">
        <p className="prose">{message}</p>
        {todo.length > 0 && (
          <div>
            <h3 className="fail__next">{t("common.nextStep")}</h3>
            <ol className="todo">
              {todo.map((step, index) => (
                <li key={index}>
                  <span>{step}</span>
                </li>
              ))}
            </ol>
          </div>
        )}
      </div>
      <footer>
        {actions}
        <CopyButton text={() => diagnostics({ code, failureKind, cause, message, sequence, ...facts })} label={t("common.copyDiagnostics")} />
      </footer>
    </section>
  );
}

/** Why a call failed, beside what was called; gone when it failed for want of a session and there is one again. Issues of fields stand at their fields, not here, unless `issues` is set. */
export function ErrorNote({ error, issues = false, action }: { error: Problem; issues?: boolean; action?: ReactNode }) {
  useLanguage();
  const next = failureNext(error);
  if (useOutlived(error)) return null;
  return (
    <div className="note note--err" role="alert" data-code={error.code}>
      <Icon name="failed" />
      <div className="grow">
        <p>
          <b className="strong">{failureTitle(error)}</b> <span className="code">{error.code}</span>
        </p>
        <p className="soft">
          <Sentence text={error.message} />
        </p>
        {issues && error.issues.length > 0 && (
          <ul className="note__issues">
            {error.issues.map((issue, index) => (
              <li key={index}>
                <code>{issue.path.join(".")}</code> {issue.message}
              </li>
            ))}
          </ul>
        )}
        {next && (
          <p className="muted">
            <Sentence text={next} />
          </p>
        )}
      </div>
      <span className="acts">
        {action}
        <CopyButton kind="ghost" text={() => diagnostics({ code: error.code, message: error.message })} label={t("common.copyDiagnostics")} />
      </span>
    </div>
  );
}
