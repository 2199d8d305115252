// After the end: what was kept can be applied, and what was applied can be taken back. Each is a new run, which asks itself.
import { useClient, type Failing, type ReviewEntry, type RunView } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, effect, EffectButton, ErrorNote, Modal, Segmented, StatePill } from "../../ui";
import { shortId } from "../approvals/facts";
import { undos, useLaterRuns, useTakenBack } from "../run/taken-back";
import { useMay } from "../approvals/may";
import { applyTo, type ApplyTo } from "../approvals/request";
import { freshKey } from "../approvals/sending";
import { applyLabel, Bar, filesText, Sum, whyNotApply } from "./bar";
import { counts, selection } from "./selection";
import type { DiffReview, DiffState } from "./store";

type Target = ApplyTo["kind"];

/** What is on its way to somebody's files, or was taken back, is not applied from here. */
const SETTLED: ReadonlySet<string> = new Set(["applying", "undone"]);

/** What the bar after the end takes. */
export interface AfterProps {
  run: { id: string; view: RunView };
  entry: ReviewEntry;
  state: DiffState;
  review: DiffReview;
}

/** The bar once the run has ended. */
export function AfterBar({ run, entry, state, review }: AfterProps) {
  useLanguage();
  const may = useMay("runs.write");
  const counted = counts(state.choices, state.files, review.body);
  const target = applyTo(run.view.carries?.to);
  const where = t(target.kind === "branch" ? "diff.to.branch" : "diff.to.files");
  const taken = useTakenBack(run.id, run.view);
  const status = entry.status === "applied" && taken.kind === "done" ? "undone" : entry.status;
  const unknown = status === "applied" && taken.kind === "unknown" ? t(taken.error ? "diff.taken.unread" : "diff.taken.reading") : undefined;
  const said = unknown === undefined ? t(`diff.over.${status}`, { target: where }) : `${t("diff.over.wasApplied", { target: where })} ${unknown}`;
  const later = <Later run={run} />;
  if (may !== true) {
    const lacks = may === false ? t("diff.permission", { permission: "runs.write" }) : "";
    return <Bar sum={<Sum counted={counted}>{`${said} ${lacks}`}</Sum>} />;
  }
  if (status === "applied") {
    const files = entry.selection?.length ?? (entry.diff.stats?.files ?? state.files.length) - (entry.diff.stats?.protected ?? 0);
    return (
      <Bar sum={<Sum counted={counted}>{said}</Sum>} note={later}>
        {taken.kind === "unknown" && taken.error && <Again run={run} />}
        {taken.kind === "asked" ? <Made id={taken.by} /> : <Undo run={run.id} files={files} why={unknown} />}
      </Bar>
    );
  }
  // What another run carried is applied from where it was made.
  if (run.view.carries !== null || SETTLED.has(status)) {
    return <Bar sum={<Sum counted={counted}>{said}</Sum>} note={later} />;
  }
  return (
    <Bar sum={<Sum counted={counted}>{said}</Sum>} note={later}>
      <Apply run={run.id} state={state} review={review} />
    </Bar>
  );
}

/** The runs that applied or took back these changes. */
function Later({ run }: Pick<AfterProps, "run">) {
  const { runs } = useLaterRuns(run.id, run.view);
  const carried = runs.filter((one) => one.parentRunId === run.id && one.id !== run.id);
  if (carried.length === 0) return null;
  return (
    <ul className="later" aria-label={t("diff.laterRuns")}>
      <li className="muted">{t("diff.laterRuns")}</li>
      {carried.map((one) => (
        <li key={one.id}>
          <Link to="/runs/$id" params={{ id: one.id }} className="mono">
            {shortId(one.id)}
          </Link>{" "}
          <StatePill state={one.state} />
        </li>
      ))}
    </ul>
  );
}

function Again({ run }: Pick<AfterProps, "run">) {
  const { refresh } = useLaterRuns(run.id, run.view);
  return <Button onClick={() => void refresh()}>{t("diff.again")}</Button>;
}

type Started = { kind: "none" } | { kind: "starting" } | { kind: "made"; id: string } | { kind: "failed"; error: Failing };

function Made({ id }: { id: string }) {
  return (
    <p className="made">
      {t("diff.start.made")}{" "}
      <Link to="/runs/$id/diff" params={{ id }}>
        {t("diff.start.open")}
      </Link>
    </p>
  );
}

function Apply({ run, state, review }: { run: string; state: DiffState; review: DiffReview }) {
  const client = useClient();
  const [target, setTarget] = useState<Target>("files");
  const [branch, setBranch] = useState("");
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState<Started>({ kind: "none" });
  const key = useRef(freshKey());
  const counted = counts(state.choices, state.files, review.body);
  const to: ApplyTo = target === "branch" ? { kind: "branch", name: branch.trim() } : { kind: target };
  const files = filesText(counted.files);
  const unnamed = to.kind === "branch" && to.name === "" ? t("diff.to.branchMissing") : undefined;
  const missing = whyNotApply(state, counted) ?? unnamed;
  async function start(): Promise<void> {
    if (started.kind === "starting" || state.diff === null) return;
    setStarted({ kind: "starting" });
    const selected = selection(state.choices, state.files);
    const place = to.kind === "branch" ? { branch: to.name } : to.kind === "commit" ? { commit: true } : {};
    const input = { id: run, digest: state.diff.digest, ...(selected !== undefined && { selection: selected }), ...place };
    const envelope = await client.call("run_apply", input, { confirm: true, idempotencyKey: key.current });
    if (!envelope.ok) {
      setStarted({ kind: "failed", error: envelope.error });
      if (envelope.error.code === "CONFLICT") void review.load();
      return;
    }
    key.current = freshKey();
    setAsking(false);
    setStarted({ kind: "made", id: envelope.data.run.id });
  }
  return (
    <>
      {started.kind === "made" && <Made id={started.id} />}
      <Segmented
        label={t("diff.to.label")}
        value={target}
        options={[
          { value: "files", label: t("diff.to.files") },
          { value: "commit", label: t("diff.to.commit") },
          { value: "branch", label: t("diff.to.branch") },
        ]}
        onChange={setTarget}
      />
      {target === "branch" && (
        <span className="field applybar__branch">
          <input
            value={branch}
            placeholder={t("diff.to.branchName")}
            aria-label={t("diff.to.branchName")}
            onChange={(event) => setBranch(event.target.value)}
          />
        </span>
      )}
      <EffectButton
        large
        icon="applying"
        label={applyLabel(to, counted)}
        disabledReason={missing}
        onClick={() => setAsking(true)}
      />
      <Modal
        open={asking}
        title={t("diff.start.title")}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button kind="ghost" onClick={() => setAsking(false)}>
              {t("approvals.back")}
            </Button>
            <EffectButton
              icon="applying"
              label={effect("diff.effect.startApply", { files })}
              disabledReason={missing}
              pending={started.kind === "starting"}
              onClick={() => void start()}
            />
          </>
        }
      >
        <p className="prose">
          {t("diff.start.text", { files, target: to.kind === "branch" ? to.name : t(`diff.to.${target}`) })}
        </p>
        {started.kind === "failed" && <ErrorNote error={started.error} issues />}
      </Modal>
    </>
  );
}

/** Offers to take back; once that has led to a run, it is that run which is shown. */
function Undo({ run, files, why }: { run: string; files: number; why: string | undefined }) {
  const client = useClient();
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState<Exclude<Started, { kind: "made" }>>({ kind: "none" });
  const named = filesText(files);
  async function start(): Promise<void> {
    if (started.kind === "starting") return;
    setStarted({ kind: "starting" });
    const envelope = await client.call("run_undo", { id: run }, { confirm: true, idempotencyKey: undos.key(run) });
    if (envelope.ok) undos.led(run, envelope.data.run.id);
    else setStarted({ kind: "failed", error: envelope.error });
  }
  return (
    <>
      <EffectButton
        large
        icon="retry"
        label={effect("diff.effect.undo", { files: named })}
        disabledReason={why}
        onClick={() => setAsking(true)}
      />
      <Modal
        open={asking}
        title={t("diff.start.undoTitle")}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button kind="ghost" onClick={() => setAsking(false)}>
              {t("approvals.back")}
            </Button>
            <EffectButton
              icon="retry"
              label={effect("diff.effect.startUndo", { files: named })}
              disabledReason={why}
              pending={started.kind === "starting"}
              onClick={() => void start()}
            />
          </>
        }
      >
        <p className="prose">{t("diff.start.undoText", { files: named })}</p>
        {started.kind === "failed" && <ErrorNote error={started.error} issues />}
      </Modal>
    </>
  );
}
