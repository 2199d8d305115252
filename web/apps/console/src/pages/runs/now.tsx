// What a run does now, or how it ended, in a few words.
import type { RunSummary as Run } from "@runyard/react";
import { plural, t } from "../../i18n";
import { DegradedFlag, durationText, spanText, useNow } from "../../ui";

/** A run that works and has said nothing for so long is called silent. */
const SILENT_MS = 120_000;

/** The flag where there is one, and what is going on. */
export function Now({ run }: { run: Run }) {
  if (!run.degraded) return <Doing run={run} />;
  return (
    <>
      <DegradedFlag reasons={[run.degraded.reason]} />
      <br />
      <span className="muted">
        <Doing run={run} />
      </span>
    </>
  );
}

function Doing({ run }: { run: Run }) {
  switch (run.state) {
    case "created":
      return t("runs.now.created");
    case "planned":
      return t("runs.now.planned");
    case "accepted":
    case "preparing":
      return run.edgeId ? t("runs.now.on", { edge: run.edgeId }) : "";
    case "running":
      return run.keptOpenUntil ? t("runs.now.keptOpen") : <Working since={run.lastEventAt} />;
    case "needs_approval":
      return plural(run.openApprovals?.length ?? 1, "runs.now.approval", "runs.now.approvals");
    case "applying":
      return t("runs.now.applying");
    case "completed":
      return t("runs.now.worked", { time: spanText(run.metrics.activeMs) });
    case "failed":
      return <span className="code">{run.code}</span>;
    case "cancelled":
      return run.code ? <span className="code code--plain">{run.code}</span> : <span title={run.message}>{run.message}</span>;
  }
}

function Working({ since }: { since: string }) {
  const silent = useNow() - Date.parse(since);
  return silent < SILENT_MS ? t("runs.now.running") : t("runs.now.silent", { time: durationText(silent) });
}
