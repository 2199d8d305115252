// The detail of each kind of row.
import type { ApprovalEntry, Row } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { maybe, t } from "../../../i18n";
import { told } from "../../../i18n/known";
import { absoluteText, Block, bytesText, failureNext, failureTitle, KeyValue, Risk, Sentence, visible } from "../../../ui";
import { Markdown } from "../../../ui/markdown";
import { WhatIsLeft } from "../end-card";
import type { ShownRun } from "../run-context";
import { SeqLink } from "../seq-link";
import { Plan } from "../timeline/rows/message";
import { commandOf, Outcome, Output } from "../timeline/rows/tool";
import { approvalName, askText, degradedText, diffText, filesText, patchText, whoText } from "../words";

const OUTPUT_CHARS_MAX = 40_000;

/** What a row is, in full. */
export function DetailContent({ run, row }: { run: ShownRun; row: Row }): ReactNode {
  switch (row.kind) {
    case "tool":
      return <ToolDetail run={run} row={row} />;
    case "message":
      return (
        <>
          <Markdown className="prose" text={row.text} />
          {row.brokeOff !== undefined && <p className="muted">{row.brokeOff}</p>}
        </>
      );
    case "reasoning":
      return <Markdown className="prose" text={row.text} />;
    case "approval":
      return <ApprovalDetail run={run} approval={row.approval} />;
    case "judged":
      return (
        <Section title={t("run.gate")}>
          <Request request={row.judged.request} />
          <KeyValue
            pairs={[
              [t("run.gateEffect"), t(`run.effectWord.${row.judged.effect}`)],
              [t("run.because"), told(row.judged.reason)],
            ]}
          />
        </Section>
      );
    case "command":
      return (
        <Section title={t("run.said")}>
          {row.command.text !== undefined && <Markdown className="prose" text={row.command.text} />}
          <KeyValue
            pairs={[
              [t("run.whoLabel"), whoText(row.command.actor)],
              [t("run.commandId"), <code key="id">{row.command.commandId}</code>],
            ]}
          />
        </Section>
      );
    case "cancelling":
      return (
        <Section title={t("run.reasonLabel")}>
          <Markdown className="prose" text={row.requested.reason} />
          <KeyValue pairs={[[t("run.whoLabel"), whoText(row.requested.by)]]} />
        </Section>
      );
    case "turn":
      return row.command?.text === undefined ? null : <Markdown className="prose" text={row.command.text} />;
    case "plan":
      return <Plan steps={row.steps} />;
    case "read":
      return <Paths paths={row.paths} />;
    case "patch":
      return (
        <Section title={filesText(row.patch.files.length)}>
          {patchText(row.patch) !== "" && <p className="prose">{row.patch.summary}</p>}
          <Paths paths={row.patch.files} />
          <DiffLink id={run.id} />
        </Section>
      );
    case "diff":
      return (
        <Section title={diffText(row.diff)}>
          <Paths paths={row.diff.paths} />
          <KeyValue
            pairs={[
              [t("run.from"), <code key="b">{told(row.diff.base)}</code>],
              [t("run.to"), <code key="t">{told(row.diff.target)}</code>],
              [t("run.digest"), digest(row.diff.digest)],
            ]}
          />
          <DiffLink id={run.id} />
        </Section>
      );
    case "artifact":
      return <ArtifactDetail run={run} row={row} />;
    case "lifecycle":
      return <LifecycleDetail run={run} row={row} />;
    case "degraded":
      return <p className="prose">{degradedText(row.reason)}</p>;
    case "runtime":
      return <p className="prose">{told(row.error?.message ?? row.died?.message ?? "")}</p>;
    case "missing":
      return <p className="prose">{t("run.missingMeans")}</p>;
    case "unknown":
      return <p className="prose">{t("run.unknownMeans")}</p>;
    default:
      return null;
  }
}

function Section({ title, end, children }: { title: string; end?: ReactNode; children: ReactNode }) {
  return (
    <section className="sec">
      <h2>
        {title}
        {end}
      </h2>
      {children}
    </section>
  );
}

function ToolDetail({ run, row }: { run: ShownRun; row: Extract<Row, { kind: "tool" }> }) {
  const command = commandOf(row);
  const given = row.call.arguments;
  const cwd =
    typeof given === "object" && given !== null && "cwd" in given && typeof given.cwd === "string" ? given.cwd : undefined;
  return (
    <>
      <Section title={command === undefined ? t("run.arguments") : t("run.commandTitle")}>
        <Block command={command !== undefined} wrap label={t("run.commandTitle")}>
          {visible(command ?? (given === undefined || given === null ? row.call.summary : JSON.stringify(given, null, 2)))}
        </Block>
        <KeyValue
          pairs={[
            [t("run.in"), cwd === "." ? t("run.checkoutRoot") : cwd],
            [
              t("run.result"),
              <span key="o">
                <Outcome row={row} /> {row.result?.code !== undefined && <code>{visible(row.result.code)}</code>}
              </span>,
            ],
            [
              t("run.summary"),
              row.result === null || /^exit code \d+$/.test(row.result.summary) ? undefined : row.result.summary,
            ],
          ]}
        />
      </Section>
      <Section title={t("run.output")}>
        <Output runId={run.id} row={row} charsMax={OUTPUT_CHARS_MAX} command={false} />
      </Section>
      {row.approval !== undefined && <ApprovalDetail run={run} approval={row.approval} />}
    </>
  );
}

function ApprovalDetail({ run, approval }: { run: ShownRun; approval: ApprovalEntry }) {
  const { resolution } = approval;
  return (
    <Section title={t("run.gate")}>
      <Request request={approval.request} />
      {approval.notes?.map((note, index) => (
        <p key={index} className="t12 muted">
          {visible(told(note))}
        </p>
      ))}
      <KeyValue
        pairs={[
          [t("run.because"), told(approval.reason)],
          [t("run.riskLabel"), <Risk key="r" risk={approval.risk} />],
          [
            t("run.approvalLabel"),
            <span key="a">
              <Link to="/approvals/$id" params={{ id: approval.approvalId }}>
                <code>{approval.approvalId}</code>
              </Link>{" "}
              · {approvalName(resolution?.resolution)}{" "}
              <SeqLink id={run.id} sequence={resolution?.sequence ?? approval.sequence} />
            </span>,
          ],
          [t("run.whoLabel"), resolution === null ? undefined : whoText(resolution.decidedBy)],
          [t("run.scopeLabel"), resolution?.scope === undefined ? undefined : t(`run.scope.${resolution.scope}`)],
          [t("run.reasonLabel"), resolution?.reason],
          [t("run.expires"), resolution === null ? absoluteText(approval.expiresAt) : undefined],
          [t("run.digest"), digest(approval.digest, approval.used)],
        ]}
      />
      {resolution?.answer !== undefined && (
        <Block label={t("run.answer")}>{visible(JSON.stringify(resolution.answer, null, 2))}</Block>
      )}
      {resolution?.comments?.map((comment, index) => (
        <p key={index} className="prose">
          <code>{comment.line === undefined ? comment.file : `${comment.file}:${comment.line}`}</code> {comment.text}
        </p>
      ))}
    </Section>
  );
}

function Request({ request }: { request: ApprovalEntry["request"] }) {
  if (request.kind === "shell") {
    return (
      <Block command wrap label={t("run.commandTitle")}>
        {visible(request.command)}
      </Block>
    );
  }
  const ask = askText(request);
  return (
    <p className="prose">
      {ask.text} {ask.object !== undefined && <code>{ask.object}</code>}
    </p>
  );
}

function digest(text: string | undefined, used = false): ReactNode {
  if (text === undefined || text === "") return undefined;
  return (
    <span>
      <code title={text}>{text.length > 20 ? `${text.slice(0, 8)} … ${text.slice(-4)}` : text}</code>
      {used && <> · {t("run.usedOnce")}</>}
    </span>
  );
}

const PATHS_MAX = 500;

function Paths({ paths }: { paths: readonly string[] }) {
  return (
    <ul className="files">
      {paths.slice(0, PATHS_MAX).map((path, index) => (
        <li key={index}>{visible(path)}</li>
      ))}
      {paths.length > PATHS_MAX && <li>{t("run.andMore", { count: paths.length - PATHS_MAX })}</li>}
    </ul>
  );
}

function DiffLink({ id }: { id: string }) {
  return (
    <p>
      <Link to="/runs/$id/diff" params={{ id }}>
        {t("run.openDiff")}
      </Link>
    </p>
  );
}

function ArtifactDetail({ run, row }: { run: ShownRun; row: Extract<Row, { kind: "artifact" }> }) {
  const { artifactId, kind, summary, name, content } = row.artifact;
  return (
    <Section title={name ?? kind}>
      <p className="prose">{summary}</p>
      <KeyValue
        pairs={[
          [t("run.kindLabel"), kind],
          [t("run.size"), content === undefined ? undefined : bytesText(content.bytes)],
          [t("run.mediaType"), content?.mediaType],
        ]}
      />
      <p>
        <Link to="/runs/$id/artifacts/$artifact" params={{ id: run.id, artifact: artifactId }}>
          {t("run.openArtifact")}
        </Link>
      </p>
    </Section>
  );
}

function LifecycleDetail({ run, row }: { run: ShownRun; row: Extract<Row, { kind: "lifecycle" }> }) {
  const { view } = run.snapshot;
  const failure = row.state === "failed" ? view.failure : null;
  const checks = row.state === "running" ? view.started?.checks : undefined;
  const ended = row.state === "completed" || row.state === "failed" || row.state === "cancelled";
  return (
    <>
      {failure !== null && (
        <Section title={failureTitle(failure)}>
          <p className="prose">{failure.message}</p>
          <p className="prose">
            <Sentence text={failureNext(failure) ?? ""} />
          </p>
          <KeyValue
            pairs={[
              [t("run.codeLabel"), <code key="c">{failure.code}</code>],
              [t("run.failureKindLabel"), failure.failureKind && <code key="k">{failure.failureKind}</code>],
              [t("run.causeLabel"), failure.cause && <code key="a">{failure.cause}</code>],
            ]}
          />
        </Section>
      )}
      {checks !== undefined && (
        <Section title={t("run.checks")}>
          <KeyValue pairs={Object.entries(checks).map(([check, found]) => [maybe(`run.check.${check}`) ?? check, told(found)])} />
        </Section>
      )}
      {ended && (
        <Section title={t("run.whatIsLeft")}>
          <WhatIsLeft run={run} />
        </Section>
      )}
    </>
  );
}
