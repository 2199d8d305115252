// The run to read: what was asked, said, done and decided, as prose. It prints well.
import type { RunView } from "@runyard/react";
import { memo, useMemo } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { absoluteText, Button, Clock, CopyButton, Empty, failureNext, failureTitle, Sentence, visible } from "../../ui";
import { Markdown } from "../../ui/markdown";
import type { ShownRun } from "./run-context";
import { SeqLink } from "./seq-link";
import { transcriptMarkdown, transcriptOf, type Entry } from "./transcript-text";
import { taskText, whoText } from "./words";

/** More than these are only in what is copied. */
const ENTRIES_MAX = 2_000;

/** The transcript of a run. */
export function Transcript({ run }: { run: ShownRun }) {
  const language = useLanguage();
  const { view } = run.snapshot;
  // Words of entries are in the language they were made in.
  const { entries, left } = useMemo(
    () => transcriptOf(view.rows, view.agentId ?? "", ENTRIES_MAX),
    [view.rows, view.agentId, language],
  );
  if (view.task === null) return <Empty icon="message" title={t("run.transcriptEmpty")} command={`runyard runs events ${run.id}`} />;
  return (
    <div className="transcript scroll" tabIndex={0} role="region" aria-label={t("run.tab.transcript")}>
      <div className="transcript__page">
        <div className="acts noprint">
          <CopyButton text={() => transcriptMarkdown(run.id, view)} label={t("run.copyMarkdown")} />
          <Button onClick={() => window.print()}>{t("run.print")}</Button>
        </div>
        <section className="said said--person">
          <p className="said__who">
            {view.actor === null ? "" : whoText(view.actor)}{" "}
            <span className="muted">{view.createdAt === null ? "" : absoluteText(view.createdAt)}</span>
          </p>
          <Markdown className="prose" text={taskText(view.task)} />
        </section>
        {entries.map((entry) => (
          <Paragraph key={entry.key} id={run.id} entry={entry} language={language} />
        ))}
        {left > 0 && <p className="muted">{plural(left, "run.transcriptLeftOne", "run.transcriptLeft")}</p>}
        {view.failure !== null && <Failure failure={view.failure} />}
      </div>
    </div>
  );
}

function Failure({ failure }: { failure: NonNullable<RunView["failure"]> }) {
  const names = [failure.code, failure.failureKind, failure.cause].filter((name) => name !== undefined);
  return (
    <section className="prose">
      <p>
        <b className="strong">{failureTitle(failure)}</b>{" "}
        {names.map((name) => (
          <span key={name}>
            <span className="code">{name}</span>{" "}
          </span>
        ))}
      </p>
      <p>{failure.message}</p>
      <p>
        <Sentence text={failureNext(failure) ?? ""} />
      </p>
    </section>
  );
}

const Paragraph = memo(function Paragraph({ id, entry }: { id: string; entry: Entry; language: string }) {
  switch (entry.kind) {
    case "turn":
      return <h2 className="said__turn">{t("run.turn", { number: entry.number })}</h2>;
    case "said":
      return (
        <section className={`said said--${entry.by}`}>
          <p className="said__who">
            {entry.who}{" "}
            <span className="muted">
              <Clock at={entry.at} /> <SeqLink id={id} sequence={entry.sequence} />
            </span>
          </p>
          <Markdown className="prose" text={entry.text} />
        </section>
      );
    case "done":
      return (
        <p className="did">
          <span>
            {entry.text} {entry.code && <code>{visible(entry.code)}</code>}
            {entry.note && <span className="muted"> — {entry.note}</span>}
            {entry.who && <span className="muted"> · {entry.who}</span>}
          </span>{" "}
          <SeqLink id={id} sequence={entry.sequence} className="muted" />
        </p>
      );
  }
});
