// What a run came to. It stands below the last event, so that its coming moves nothing that is being read.
import type { RunView } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { FailureCard, Icon, LinkButton, type IconName } from "../../ui";
import { Markdown } from "../../ui/markdown";
import { goingOn, mayGoOn } from "./allowed";
import type { ShownRun } from "./run-context";
import { SeqLink } from "./seq-link";
import { useTakenBack } from "./taken-back";
import { artifactCount, noDiffText, shortRun, whoText } from "./words";

/** The card of a run that has ended; nothing before. */
export function EndCard({ run }: { run: ShownRun }) {
  useLanguage();
  const { view } = run.snapshot;
  if (view.failure !== null) return <Failed run={run} failure={view.failure} />;
  if (view.cancelled !== null) return <Cancelled run={run} cancelled={view.cancelled} />;
  if (view.completed !== null) return <Completed run={run} completed={view.completed} />;
  return null;
}

function Failed({ run, failure }: { run: ShownRun; failure: NonNullable<RunView["failure"]> }) {
  const { view } = run.snapshot;
  return (
    <div className="endcard">
      <FailureCard
        code={failure.code}
        failureKind={failure.failureKind}
        cause={failure.cause}
        message={failure.message}
        recovery={failure.recovery}
        sequence={view.lastSequence}
        facts={{
          run: run.id,
          agent: view.agentId ?? undefined,
          backend: view.backendProfile ?? undefined,
          edge: view.edgeId ?? undefined,
        }}
        actions={
          <>
            <LinkButton kind="ink" icon="retry" to="/runs/new" search={{ from: run.id }}>
              {t("run.runAgain")}
            </LinkButton>
            <GoOn run={run} />
            {view.review !== null && (
              <LinkButton kind="review" icon="eye" to="/runs/$id/diff" params={{ id: run.id }}>
                {t("run.reviewDiff")}
              </LinkButton>
            )}
          </>
        }
      />
      <WhatIsLeft run={run} />
    </div>
  );
}

function Cancelled({ run, cancelled }: { run: ShownRun; cancelled: NonNullable<RunView["cancelled"]> }) {
  const status = run.snapshot.view.review?.status;
  const inPlace = status === "applied" || status === "undone";
  return (
    <Card
      icon="cancelled"
      state="cancelled"
      title={t("run.cancelledBy", { who: whoText(cancelled.by) })}
      code={cancelled.code}
      run={run}
    >
      {cancelled.reason !== "" && <p className="prose">“{cancelled.reason}”</p>}
      <p className="muted">{t(inPlace ? "run.cancelledInPlace" : "run.cancelledMeans")}</p>
      {status === "applied" && <TakenBack run={run} />}
    </Card>
  );
}

function Completed({ run, completed }: { run: ShownRun; completed: NonNullable<RunView["completed"]> }) {
  const unused = completed.unusedApprovals?.length ?? 0;
  const undid = run.snapshot.view.carries?.undo === true && completed.diff === "applied";
  const part = completed.diff === "applied" && run.snapshot.view.review?.selection !== undefined;
  const title = undid ? t("run.completedUndo") : part ? t("run.completedPart") : t(`run.completedDiff.${completed.diff}`);
  return (
    <Card icon="completed" state="completed" title={title} run={run}>
      {completed.diff === "applied" && !undid && <TakenBack run={run} />}
      {completed.response !== "" && !saidAbove(run.snapshot.view, completed.response) && (
        <Markdown className="prose" text={completed.response} />
      )}
      {unused > 0 && <p className="muted">{plural(unused, "run.unusedOne", "run.unusedMany")}</p>}
    </Card>
  );
}

/** What was applied may be gone again: a later run of this one's changes says so. */
function TakenBack({ run }: { run: ShownRun }) {
  const taken = useTakenBack(run.id, run.snapshot.view);
  if (taken.kind !== "done") return null;
  return (
    <p>
      <b className="strong">{t("run.takenBack")}</b>{" "}
      <Link to="/runs/$id" params={{ id: taken.by }} className="mono">
        {shortRun(taken.by)}
      </Link>
    </p>
  );
}

const LOOK_BACK_MAX = 30;

/** Whether the answer stands in the timeline just above: then it is not said twice. */
function saidAbove({ rows }: RunView, response: string): boolean {
  for (let index = rows.length - 1; index >= Math.max(0, rows.length - LOOK_BACK_MAX); index -= 1) {
    const row = rows.at(index);
    if (row.kind === "message") return row.text.trim() === response.trim();
  }
  return false;
}

function Card({
  icon,
  state,
  title,
  code,
  run,
  children,
}: {
  icon: IconName;
  state: string;
  title: string;
  code?: string | undefined;
  run: ShownRun;
  children: ReactNode;
}) {
  return (
    <section className={`endcard ended st-${state}`} aria-label={t("run.outcomeLabel")}>
      <div className="ended__head">
        <Icon name={icon} />
        <h2 className="grow">{title}</h2>
        {code !== undefined && <span className="code">{code}</span>}
        <SeqLink id={run.id} sequence={run.snapshot.view.lastSequence} className="t12" />
      </div>
      <div className="ended__body">{children}</div>
      <WhatIsLeft run={run} />
      <footer className="acts">
        <LinkButton icon="retry" to="/runs/new" search={{ from: run.id }}>
          {t("run.runAgain")}
        </LinkButton>
        <GoOn run={run} />
      </footer>
    </section>
  );
}

/** The way to a further run in the same session. */
function GoOn({ run }: { run: ShownRun }) {
  if (!mayGoOn(run.snapshot.view)) return null;
  return (
    <LinkButton icon="message" to="/runs/new" search={goingOn(run.id)}>
      {t("run.goOn")}
    </LinkButton>
  );
}

/** Where the evidence is: four places, and why one of them is empty. */
export function WhatIsLeft({ run }: { run: ShownRun }) {
  const { view } = run.snapshot;
  const files = view.review === null ? 0 : (view.review.diff.stats?.files ?? view.review.diff.paths.length);
  const artifacts = artifactCount(view);
  const undone = view.carries?.undo === true && view.review?.status === "undone";
  const params = { id: run.id };
  return (
    <ul className="plist" aria-label={t("run.whatIsLeft")}>
      <Place
        icon="patch"
        absent={view.review === null ? noDiffText(view) : files === 0 ? t("run.noChanges") : undefined}
        note={view.review === null || files === 0 || undone ? "" : <ApplyStatus run={run} review={view.review} />}
      >
        <Link to="/runs/$id/diff" params={params}>
          {undone ? plural(files, "run.undoneOne", "run.undoneMany") : plural(files, "run.diffOne", "run.diffMany")}
        </Link>
      </Place>
      <Place icon="preparing" absent={artifacts === 0 ? t("run.noArtifacts") : undefined} note="">
        <Link to="/runs/$id/artifacts" params={params}>
          {plural(artifacts, "run.artifactOne", "run.artifactMany")}
        </Link>
      </Place>
      <Place icon="message" note={plural(view.turns, "run.turnOne", "run.turnMany")}>
        <Link to="/runs/$id/transcript" params={params}>
          {t("run.tab.transcript")}
        </Link>
      </Place>
      <Place icon="audit" note={t("run.eventCount", { count: view.lastSequence })}>
        <Link to="/runs/$id/audit" params={params}>
          {t("run.tab.audit")}
        </Link>
      </Place>
    </ul>
  );
}

/** What became of the changes. Only of applied ones it is worth reading whether they were taken back. */
function ApplyStatus({ run, review }: { run: ShownRun; review: NonNullable<RunView["review"]> }): ReactNode {
  return review.status === "applied" ? <Applied run={run} isPart={review.selection !== undefined} /> : t(`run.applyStatus.${review.status}`);
}

function Applied({ run, isPart }: { run: ShownRun; isPart: boolean }): ReactNode {
  const taken = useTakenBack(run.id, run.snapshot.view);
  if (taken.kind === "done") return t("run.applyStatus.undone");
  return t(isPart ? "run.appliedPart" : "run.applyStatus.applied");
}

function Place({
  icon,
  absent,
  note,
  children,
}: {
  icon: IconName;
  absent?: string | undefined;
  note: ReactNode;
  children: ReactNode;
}) {
  return (
    <li>
      <Icon name={icon} small />
      <span className="grow">{absent === undefined ? children : <span className="muted">{absent}</span>}</span>
      <span className="muted">{note}</span>
    </li>
  );
}
