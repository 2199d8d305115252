// The page of a run. Where is it, what happened, what is this: three columns, and the decision at the foot of the last.
import { useRun } from "@runyard/react";
import { useParams } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import { useRunTab } from "../../app/run-tab";
import { t, useLanguage } from "../../i18n";
import { announce, Empty, LinkButton, PageHead, stateText } from "../../ui";
import { ApprovalPanel } from "../approvals/panel";
import { ArtifactsTab } from "../artifacts";
import { AuditTab } from "../audit";
import { DiffTab } from "../diff";
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
  const run = useMemo<ShownRun>(() => ({ id, snapshot }), [id, snapshot]);
  const place = useRunPlace(id);
  const { tab } = useRunTab();
  const memory = useRef<Memory>({ following: null, top: null, open: new Set() });
  const { view, link } = snapshot;
  useStateAnnouncement(view.state);
  const reading = useReading(run);
  if (link.kind === "refused" && view.lastSequence === 0) return <Refused code={link.code} message={link.message} id={id} />;
  return (
    <div className="runpage" data-reading={reading === "all" ? undefined : reading}>
      <header className="head">
        <RunHead run={run} />
        <RunTabs id={id} tab={tab} view={view} place={place} />
      </header>
      {tab === "timeline" && reading === "all" && <DegradedBanner id={id} view={view} />}
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
      {tab === "artifacts" && <ArtifactsTab run={run} />}
      {tab === "transcript" && <Transcript run={run} />}
      {tab === "audit" && <AuditTab run={run} />}
    </div>
  );
}

/** A change of state is said; mere progress is not. */
function useStateAnnouncement(state: string): void {
  const before = useRef(state);
  useEffect(() => {
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
