// The page of a run. Where is it, what happened, what is this: three columns, and the decision at the foot of the last.
import { type RunView, useRun } from "@runyard/react";
import { useParams } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import { useRunTab } from "../../app/run-tab";
import { t, useLanguage } from "../../i18n";
import { announce, Empty, LinkButton, PageHead, stateText } from "../../ui";
import { ApprovalPanel } from "../approvals/panel";
import { ArtifactsTab } from "../artifacts";
import { AuditTab } from "../audit";
import { DiffTab } from "../diff";
import { Waiting } from "../system/section";
import { DegradedBanner } from "./banner";
import { Detail } from "./detail";
import { RunHead } from "./header";
import { useRunPlace } from "./location";
import { Rail, Strip } from "./rail";
import { useReading } from "./settled";
import { RunTabs } from "./tabs";
import { Timeline, type Memory } from "./timeline";
import { Transcript } from "./transcript";
import type { ShownRun } from "./run-context";

/** A run. */
export function RunPage() {
  const { id } = useParams({ from: "/runs/$id" });
  // Another run is another page: nothing of what was opened or typed is carried over.
  return <RunOf key={id} id={id} />;
}

function RunOf({ id }: { id: string }) {
  useLanguage();
  const snapshot = useRun(id);
  const { reading, drawn } = useReading(id, snapshot);
  const run = useMemo<ShownRun>(() => ({ id, snapshot, reading }), [id, snapshot, reading]);
  const place = useRunPlace(id);
  const { tab } = useRunTab();
  const memory = useRef<Memory>({ following: null, top: null, open: new Set() });
  const { view, link } = snapshot;
  useStateAnnouncement(reading === null ? view.state : "unknown");
  if (link.kind === "refused" && view.lastSequence === 0) return <Refused code={link.code} message={link.message} id={id} />;
  return (
    <div className="runpage" data-reading={drawn === "none" ? "begun" : reading === null ? undefined : "some"}>
      <header className="head">
        <RunHead run={run} />
        <RunTabs id={id} tab={tab} view={view} place={place} />
      </header>
      {tab === "timeline" && drawn === "all" && <DegradedBanner id={id} view={view} />}
      {tab === "timeline" && <Strip run={run} />}
      {tab === "timeline" && (
        <div className="run">
          <Rail run={run} />
          <Timeline run={run} place={place} memory={memory.current} />
          <aside className="side" aria-label={t("run.side")}>
            <Detail run={run} place={place} />
            <ApprovalPanel run={run} />
          </aside>
        </div>
      )}
      {tab === "diff" && <DiffTab run={run} />}
      {tab === "artifacts" && <OnceNamed view={view}><ArtifactsTab run={run} /></OnceNamed>}
      {tab === "transcript" && <Transcript run={run} />}
      {tab === "audit" && <OnceNamed view={view}><AuditTab run={run} /></OnceNamed>}
    </div>
  );
}

/** What does not come with the log waits for the run's name: the head grows with that, and would push away what is there. */
function OnceNamed({ view, children }: { view: RunView; children: ReactNode }) {
  return view.createdAt === null ? <Waiting /> : children;
}

/** A change of state is said; mere progress is not, nor what changed long ago. */
function useStateAnnouncement(state: string): void {
  const before = useRef(state);
  useEffect(() => {
    if (state === "unknown") return;
    if (before.current !== state && before.current !== "unknown") announce(t("run.nowState", { state: stateText(state) }));
    before.current = state;
  }, [state]);
}

const RUN_ID = /^run_[0-9a-f]{32}$/;

function Refused({ code, message, id }: { code: string; message: string; id: string }) {
  if (!RUN_ID.test(id)) {
    return (
      <>
        <PageHead title={id} />
        <Empty icon="question" title={t("run.noRunTitle")} action={<LinkButton to="/runs">{t("run.allRuns")}</LinkButton>}>
          {t("run.noRunMeans")}
        </Empty>
      </>
    );
  }
  return (
    <>
      <PageHead title={id} />
      <Empty
        icon="question"
        title={t("run.refusedTitle")}
        command={`runyard runs show ${id}`}
        action={<LinkButton to="/runs">{t("run.allRuns")}</LinkButton>}
      >
        <p>
          <span className="code">{code}</span> {message}
        </p>
      </Empty>
    </>
  );
}
