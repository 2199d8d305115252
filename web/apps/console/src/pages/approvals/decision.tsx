// The decision on one approval: scope, answer, rejection, and the effect. The same in the run's panel and in the inbox.
import { useId, useMemo, useState, type ReactNode } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, EffectButton, ErrorNote, Icon, useNow } from "../../ui";
import type { FormIssue } from "../../ui/schema-form";
import { chosenInDiff } from "../diff/reviews";
import { meaningOf, type Asked } from "./asked";
import { useDecide, useStage } from "./decide";
import { DecidedLine } from "./facts";
import { appliedFiles, askIcon, effectLabel, inWords, short, typedWord, type Scope } from "./label";
import { useMay } from "./may";
import { answerOf, asText, hasFields, misfits, QuestionForm, type Given } from "./question";
import { RejectForm } from "./reject";
import { ScopeChoice, useRule, type Looked } from "./scope";
import type { Stage } from "./sending";
import { Snooze } from "./snooze";

const NONE: readonly FormIssue[] = [];

/** What of the run a decision needs to know. */
export interface RunFacts {
  onReject: "cancel" | "continue" | null;
  sessionId: string | null;
  /** Whether it carries changes of another run: then no agent could try again. */
  carries: boolean;
}

/** Everything below the content of an open approval. */
export function DecisionFoot({ asked, facts, unread, large = false }: {
  asked: Asked;
  facts: RunFacts;
  /** Why it is not known yet that it is open: a log that is still read may call open what was decided long ago. */
  unread?: string | undefined;
  large?: boolean;
}) {
  useLanguage();
  const may = useMay("approvals.resolve");
  const { stage, decide, dismiss } = useDecide(asked);
  const [scope, setScope] = useState<Scope>("once");
  const [rejecting, setRejecting] = useState(false);
  const [typed, setTyped] = useState("");
  const looked = useRule(asked, facts.sessionId, scope);
  const [given, setGiven] = useState<Given>({ kind: "nothing" });
  const [issues, setIssues] = useState(NONE);
  const expired = useNow() > Date.parse(asked.expiresAt);
  const { ask } = asked;
  const question = ask.kind === "question";
  const answer = question ? answerOf(ask.answerSchema, given) : null;
  // What the hub says of an answer stands at its fields, where it has some. The list is a new one only where that is news: it takes the focus.
  const isTyped = question && hasFields(ask.answerSchema);
  const told = useMemo(() => (isTyped ? misfits(stage) : NONE), [isTyped, stage]);
  const meaning = meaningOf(ask, facts.onReject);
  const sending = stage.kind === "sending";
  const destroys = ask.kind === "action" && ask.sideEffects === "destructive";
  const dangerous = asked.risk === "high" || destroys || ask.kind === "unknown";
  const word = dangerous ? typedWord(ask) : null;
  if (may === false) {
    return (
      <p className="ask__why">
        <Icon name="lock" small /> {t("approvals.noPermission")}
      </p>
    );
  }
  const label = inWords(effectLabel(ask, scope, answer?.ok ? short(asText(answer.value)) : undefined));
  const refusedReason = may === null ? t("common.loading") : unread ?? whyNot({ asked, expired, looked, word, typed, answer });
  function take(): void {
    setIssues(answer?.ok === false ? [...answer.issues] : NONE);
    if (answer?.ok === false) {
      // What the hub said of an earlier answer is not said of this one.
      if (told.length > 0) dismiss();
      return;
    }
    void decide({ says: "approve", scope, ...(answer?.ok && { answer: answer.value }) });
  }
  return (
    <div className="decision">
      {asked.denied !== null && <Warning>{t("approvals.denied", { reason: asked.denied })}</Warning>}
      {expired && <Warning>{t("approvals.expired")}</Warning>}
      <StageNote stage={stage} onDismiss={dismiss} toldElsewhere={told.length > 0} />
      {rejecting ? (
        <RejectForm
          about={`${asked.id} ${asked.digest}`}
          meaning={meaning}
          canRevise={ask.kind === "apply" && !ask.undo && !facts.carries}
          pending={sending}
          unread={unread}
          onReject={(reason) => void decide({ says: "reject", reason })}
          onRevise={(reason) => void decide({ says: "revise", reason, comments: [] })}
          onBack={() => setRejecting(false)}
        />
      ) : (
        <>
          {question && <QuestionForm id={asked.id} schema={ask.answerSchema} given={given} onChange={setGiven} issues={told.length > 0 ? told : issues} />}
          {asked.denied === null && <ScopeChoice asked={asked} looked={looked} scope={scope} onChange={setScope} />}
          {word !== null && asked.denied === null && <TypedWord word={word} typed={typed} onChange={setTyped} />}
          <div className="acts">
            <Button
              kind="reject"
              large={large}
              onClick={() => setRejecting(true)}
              disabledReason={sending ? t("approvals.stage.sending") : unread}
            >
              {t("approvals.reject")}
            </Button>
            <Snooze id={asked.id} disabledReason={sending ? t("approvals.stage.sending") : unread} />
            <EffectButton
              className="push"
              icon={askIcon(ask)}
              danger={dangerous}
              large={large}
              label={label}
              about={`${asked.id} ${asked.digest} ${looked.kind}`}
              pending={sending}
              disabledReason={sending ? undefined : refusedReason}
              onClick={take}
            />
          </div>
          <p className="ask__why">
            {t(`approvals.means.${meaning}`)} {t("approvals.reviewHint")}
          </p>
        </>
      )}
    </div>
  );
}

function whyNot({ asked, expired, looked, word, typed, answer }: {
  asked: Asked;
  expired: boolean;
  looked: Looked;
  word: string | null;
  typed: string;
  answer: { ok: boolean; issues?: readonly FormIssue[] } | null;
}): string | undefined {
  if (asked.denied !== null) return t("approvals.deniedShort");
  if (expired) return t("approvals.expired");
  // Nobody stores a rule without having seen what it would allow.
  if (looked.kind === "looking") return t("approvals.scope.looking");
  if (looked.kind === "failed") return t("approvals.scope.notLooked");
  if (asked.ask.kind === "apply" && appliedFiles(asked.ask) === 0) return t("approvals.onlyProtected");
  // The effect would take all of it, and somebody has chosen less: it is applied where it was chosen.
  if (asked.ask.kind === "apply" && chosenInDiff(asked.runId, asked.digest)) return t("diff.chosenThere");
  // An answer with mistakes can be pressed: that shows where they are.
  if (answer && !answer.ok && (answer.issues?.length ?? 0) === 0) return t("approvals.answerFirst");
  if (word !== null && typed.trim() !== word) return t("approvals.typeMissing", { word });
  return undefined;
}

/** The field in which a word is typed before a dangerous effect. */
export function TypedWord({ word, typed, onChange }: { word: string; typed: string; onChange: (typed: string) => void }) {
  const id = useId();
  const [before, after] = t("approvals.typeWord", { word: "\n" }).split("\n");
  return (
    <div className="typed">
      <label htmlFor={id}>
        {before}
        <code>{word}</code>
        {after}
      </label>
      <input
        id={id}
        className="input mono"
        value={typed}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

/** What stands in the place of a decision once there is one: who made it, and whether somebody here came too late. */
export function Outcome({ asked }: { asked: Asked }) {
  useLanguage();
  const late = useStage(asked.id).kind === "late";
  return (
    <>
      <DecidedLine asked={asked} />
      {late && (
        <p className="ask__why" role="status">
          {t("approvals.stage.late")}
        </p>
      )}
    </>
  );
}

function Warning({ children }: { children: ReactNode }) {
  return (
    <p className="ask__warn" role="status">
      <Icon name="high" small /> {children}
    </p>
  );
}

/** What became of a decision so far, until the run's event is there. */
export function StageNote({ stage, onDismiss, toldElsewhere = false }: {
  stage: Stage;
  onDismiss: () => void;
  /** Whether each issue stands at its field. */
  toldElsewhere?: boolean;
}) {
  const done = <Button onClick={onDismiss}>{t("approvals.dismiss")}</Button>;
  switch (stage.kind) {
    case "idle":
    // What it came too late for is over, and says so itself.
    case "late":
      return null;
    case "sending":
      return (
        <p className="ask__why" role="status">
          {t(stage.answered ? "approvals.stage.recorded" : "approvals.stage.sending")}
        </p>
      );
    case "stale":
      return (
        <div className="ask__stage" role="alert">
          <Warning>{t("approvals.stage.stale")}</Warning>
          {done}
        </div>
      );
    case "unsure":
      return (
        <ErrorNote error={stage.refusal} action={<span className="muted t12">{t("approvals.stage.unsure")}</span>} />
      );
    case "refused":
      return <ErrorNote error={stage.refusal} issues={!toldElsewhere} action={done} />;
  }
}
