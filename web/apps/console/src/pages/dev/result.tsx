// What comes of a call, as it comes: lines, progress, artifacts, and at last the envelope.
import type { Envelope, LogLine, ProducedArtifact, Progress } from "@runyard/react";
import { useEffect, useMemo, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { Block, CopyButton, Icon, visible, type IconName } from "../../ui";
import { own } from "../../ui/schema-form/json";
import { pretty } from "./pretty";

const LOG_LINES_MAX = 1000;
/** So near to its end a log still counts as read to the end. */
const END_PX = 24;

/** What is shown of a call. */
export interface ResultProps {
  running: boolean;
  logs: readonly LogLine[];
  progress: Progress | null;
  artifacts: readonly ProducedArtifact[];
  envelope: Envelope<unknown> | null;
}

/** The state of a call in words. */
function stateOf({ running, envelope }: ResultProps): { kind: string; icon: IconName; text: string } {
  if (running || !envelope) return { kind: "running", icon: "running", text: t("dev.running") };
  if (envelope.ok) return { kind: "completed", icon: "completed", text: t("dev.done") };
  const { code, message } = envelope.error;
  if (code === "CANCELLED") return { kind: "cancelled", icon: "cancelled", text: t("dev.cancelled") };
  return { kind: "failed", icon: "failed", text: `${code}: ${message}` };
}

/** The result of a call. */
export function Result(props: ResultProps) {
  useLanguage();
  const { logs, progress, artifacts, envelope, running } = props;
  const state = stateOf(props);
  const text = useMemo(() => (envelope ? pretty(envelope) : ""), [envelope]);
  return (
    <section className="result" aria-labelledby="dev-result-title">
      <div className="result__head">
        <h2 id="dev-result-title">{t("dev.result")}</h2>
        <span className={`pill st-${state.kind}`} role="status" id="dev-state" data-state={state.kind}>
          <Icon name={state.icon} />
          <span>{visible(state.text)}</span>
        </span>
        <span className="muted num" id="dev-took">
          {envelope && !running ? t("dev.took", { ms: envelope.meta.durationMs }) : ""}
        </span>
      </div>
      {running && progress?.percent != null && <progress max={100} value={progress.percent} aria-label={t("dev.progress")} />}
      <Log logs={logs} />
      {artifacts.length > 0 && (
        <ul className="result__artifacts" aria-label={t("dev.artifacts")}>
          {artifacts.map((artifact, index) => (
            <li key={index}>
              <Icon name="file" small /> {visible(artifactText(artifact))}
            </li>
          ))}
        </ul>
      )}
      {envelope && !running && (
        <>
          <div className="result__head">
            <h3>{t("dev.envelope")}</h3>
            <span className="grow" />
            <CopyButton kind="ghost" text={() => JSON.stringify(envelope, null, 2)} />
          </div>
          <Block label={t("dev.envelope")} className="result__envelope">
            {text}
          </Block>
        </>
      )}
    </section>
  );
}

function artifactText(artifact: ProducedArtifact): string {
  const word = (...names: string[]) => names.map((name) => own(artifact, name)).find((value) => typeof value === "string");
  return `${String(word("type") ?? "file")} ${String(word("name", "path", "uri", "id") ?? "")}`;
}

/** The lines as they come. It follows the last one, unless somebody looks further up. */
function Log({ logs }: { logs: readonly LogLine[] }) {
  const list = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (list.current && follows.current) list.current.scrollTop = list.current.scrollHeight;
  }, [logs.length]);
  if (logs.length === 0) return null;
  const from = Math.max(0, logs.length - LOG_LINES_MAX);
  return (
    <>
      {from > 0 && <p className="muted">{t("dev.linesLeftOut", { count: from })}</p>}
      <div
        className="log scroll"
        ref={list}
        tabIndex={0}
        role="log"
        aria-label={t("dev.log")}
        onScroll={({ currentTarget: log }) => (follows.current = log.scrollTop + log.clientHeight > log.scrollHeight - END_PX)}
      >
        {logs.slice(from).map((line, index) => (
          <Line key={from + index} line={line} />
        ))}
      </div>
    </>
  );
}

function Line({ line }: { line: LogLine }) {
  const { type, percent, ...fields } = line.fields ?? {};
  const isProgress = type === "progress";
  const rest = isProgress ? fields : (line.fields ?? {});
  return (
    <div className={`log__line log__line--${isProgress ? "progress" : line.level}`}>
      <span className="log__level">{isProgress ? "progress" : line.level}</span>
      <span className="log__text">
        {isProgress && typeof percent === "number" ? `${percent}% ` : ""}
        {visible(line.message ?? "")}
        {Object.keys(rest).length > 0 && <span className="muted"> {visible(JSON.stringify(rest))}</span>}
      </span>
    </div>
  );
}
