// The bar that counts what is chosen, names where it goes, and takes the effect while the run asks for it.
import { useEffect, useState, type ReactNode } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { Button, effect, EffectButton, Modal, type EffectLabel } from "../../ui";
import { later, meaningOf, type Asked } from "../approvals/asked";
import { useDecide, useHubsWord } from "../approvals/decide";
import { Outcome, StageNote, TypedWord, type RunFacts } from "../approvals/decision";
import { targetText } from "../approvals/facts";
import { useHeard } from "../approvals/heard";
import { typedWord } from "../approvals/label";
import { useMay } from "../approvals/may";
import { RejectForm } from "../approvals/reject";
import type { ApplyTo } from "../approvals/request";
import { sentComments } from "./comments";
import { counts, selection, type Counts } from "./selection";
import type { DiffReview, DiffState } from "./store";

/** `2 files`, as the language has it. */
export const filesText = (count: number): string => plural(count, "diff.fileOne", "diff.fileMany");
const hunksText = (count: number): string => plural(count, "diff.hunkOne", "diff.hunkMany");

/** The label of applying what is chosen. */
export function applyLabel(to: ApplyTo, counted: Pick<Counts, "files" | "hunks">): EffectLabel {
  const values = { files: filesText(counted.files), hunks: hunksText(counted.hunks) };
  const some = counted.hunks > 0;
  if (to.kind === "branch") return effect(some ? "diff.effect.branch" : "diff.effect.branchFiles", values, to.name);
  if (to.kind === "commit") return effect(some ? "diff.effect.commit" : "diff.effect.commitFiles", values);
  return effect(some ? "diff.effect.apply" : "diff.effect.applyFiles", values);
}

/** How much is chosen, in words. */
export function Sum({ counted, words, children }: { counted: Counts; words?: string; children: ReactNode }) {
  const { files, filesOf, hunks, hunksOf } = counted;
  if (words !== undefined) {
    return (
      <div className="sum">
        <b className="strong">{words}</b>
        <span className="muted t12">{children}</span>
      </div>
    );
  }
  return (
    <div className="sum">
      <span>
        <b className="strong">{t(hunksOf > 0 ? "diff.sum" : "diff.sumFiles", { files, filesOf, hunks, hunksOf })}</b>{" "}
        <span className="num mono t12">
          <span className="add">+{counted.insertions}</span> <span className="del">−{counted.deletions}</span>
        </span>
      </span>
      <span className="muted t12">{children}</span>
    </div>
  );
}

/** What of the changes could not be read, where that failed: what is shown is not all of them, or not what they are by now. */
export function unreadText({ error, complete }: DiffState): string | undefined {
  return error === null ? undefined : t(complete ? "diff.notReread" : "diff.notListed");
}

/** Why nothing can be applied now. */
export function whyNotApply(state: DiffState, counted: Counts): string | undefined {
  const unread = unreadText(state);
  if (unread !== undefined) return unread;
  if (!state.complete) return t("diff.listIncomplete");
  if (counted.files === 0) return t("diff.nothingChosen");
  return undefined;
}

/** The bar while the run waits for the answer. */
export function AskingBar({ asked: streamed, facts, past, state, review, fixed }: {
  asked: Asked;
  /** Whether the run's log is still read: what it asks for here may have been decided long ago. */
  past: boolean;
  facts: RunFacts;
  state: DiffState;
  review: DiffReview;
  /** What is applied was chosen when the run was started. */
  fixed: boolean;
}) {
  useLanguage();
  const may = useMay("approvals.resolve");
  const newest = later(streamed, useHeard().get(streamed.id));
  // The answer is bound to what is shown here, whatever the stream has brought meanwhile.
  const asked: Asked = { ...newest, digest: state.diff?.digest ?? newest.digest };
  const { said, denied } = useHubsWord(asked.id);
  const { stage, decide, dismiss } = useDecide(asked);
  const [rejecting, setRejecting] = useState(false);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    if (stage.kind === "stale") void review.load();
  }, [stage.kind, review]);
  const { ask } = asked;
  if (ask.kind !== "apply") return null;
  const counted = counts(state.choices, state.files, review.body);
  if (asked.state !== "open") return <Bar sum={<Sum counted={counted}>{t("diff.over.decided")}</Sum>} note={<Outcome asked={asked} />} />;
  const sending = stage.kind === "sending";
  const about = `${asked.id} ${asked.digest}`;
  const canRevise = !ask.undo && !facts.carries;
  const word = asked.risk === "high" ? typedWord(ask) : null;
  const label = ask.undo ? undoLabel(ask.to, ask.stats.files) : applyLabel(ask.to, counted);
  if (may === false) {
    return <Bar sum={<Sum counted={counted}>{t("diff.permission", { permission: "approvals.resolve" })}</Sum>} />;
  }
  const missing = word !== null && typed.trim() !== word ? t("approvals.typeMissing", { word }) : undefined;
  const barred = denied === null ? undefined : t("approvals.denied", { reason: denied });
  const unread = past ? t("run.refused.reading") : may === null || !said ? t("common.loading") : undefined;
  const refused = unread ?? (barred ?? (ask.undo ? unreadText(state) : whyNotApply(state, counted)) ?? missing);
  const selected = fixed || ask.undo ? undefined : selection(state.choices, state.files);
  const part = selected === undefined ? {} : { selection: selected };
  async function send(): Promise<void> {
    const comments = sentComments(state.comments, state.files, review.body);
    if (await decide({ says: "revise", reason: t("diff.sendReason"), comments })) review.setComments(() => []);
  }
  async function revise(reason: string): Promise<void> {
    const comments = sentComments(state.comments, state.files, review.body);
    if (await decide({ says: "revise", reason, comments })) review.setComments(() => []);
  }
  return (
    <Bar
      note={<StageNote stage={stage} onDismiss={dismiss} />}
      sum={
        <Sum counted={counted} {...(ask.undo && { words: t("diff.undoSum", { files: filesText(ask.stats.files) }) })}>
          {fixed && !ask.undo && `${t("diff.carriedPart")} `}
          {!ask.undo && `${t("diff.toTarget", { target: targetText(ask) })} · ${t("diff.undoable")}. `}
          <span className="wide">{t("diff.clash")}</span>
        </Sum>
      }
    >
      {word !== null && <TypedWord word={word} typed={typed} onChange={setTyped} />}
      {canRevise && state.comments.length > 0 && (
        <EffectButton
          large
          quiet
          icon="comment"
          label={{ text: commentsLabel(state.comments.length) }}
          about={about}
          pending={sending && stage.says === "revise"}
          disabledReason={sending ? t("approvals.stage.sending") : unread}
          onClick={() => void send()}
        />
      )}
      <Button
        large
        kind="reject"
        disabledReason={sending ? t("approvals.stage.sending") : unread}
        onClick={() => setRejecting(true)}
      >
        {t("approvals.reject")}
      </Button>
      <EffectButton
        large
        icon={ask.undo ? "retry" : "applying"}
        label={label}
        about={about}
        danger={word !== null}
        pending={sending && stage.says === "approve"}
        disabledReason={sending ? undefined : refused}
        onClick={() => void decide({ says: "approve", scope: "once", ...part })}
      />
      <Modal open={rejecting} title={t("approvals.reject")} onClose={() => setRejecting(false)}>
        <RejectForm
          about={about}
          meaning={meaningOf(ask, facts.onReject)}
          canRevise={canRevise}
          pending={sending}
          unread={unread}
          onReject={(reason) => {
            setRejecting(false);
            void decide({ says: "reject", reason });
          }}
          onRevise={(reason) => {
            setRejecting(false);
            void revise(reason);
          }}
          onBack={() => setRejecting(false)}
        />
      </Modal>
    </Bar>
  );
}

function undoLabel(to: ApplyTo, files: number): EffectLabel {
  if (to.kind === "branch") return effect("diff.effect.undoBranch", {}, to.name);
  return effect("diff.effect.undoThis", { files: filesText(files) });
}

/** The label of sending comments. */
export function commentsLabel(count: number): string {
  return plural(count, "diff.effect.sendCommentOne", "diff.effect.sendComments");
}

/** The bar at the foot of the diff. */
export function Bar({ sum, note, children }: { sum: ReactNode; note?: ReactNode; children?: ReactNode }) {
  return (
    <footer className="applybar">
      {sum}
      {note && <div className="applybar__note">{note}</div>}
      {children && <div className="acts">{children}</div>}
    </footer>
  );
}
