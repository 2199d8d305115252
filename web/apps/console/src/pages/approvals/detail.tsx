// One approval in full, open or over.
import { useData, useHub, useRun, type actions, type RunView } from "@runyard/react";
import { useEffect, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { Empty, ErrorNote, Icon, LinkButton, Risk, stateText, useShortcut } from "../../ui";
import { fromEvents, fromList, later, type Asked } from "./asked";
import { useNewest, useStage } from "./decide";
import { DecisionFoot, Outcome, type RunFacts } from "./decision";
import { Exact } from "./exact";
import { Facts, stakeText } from "./facts";
import { headingKey } from "./label";
import { LabelText } from "./panel";
import { focusReview, ReviewLink } from "./review-link";

/** The approval of this id, from the hub and from its run's events. */
export function ApprovalDetail({ id, changed }: { id: string; changed: number }) {
  useLanguage();
  const { data, error, refresh } = useData("approval_show", { id });
  const refused = useStage(id).kind === "refused";
  // Anew when the list says that something changed, and when a decision was refused: a rule may deny it by now.
  useEffect(() => {
    if (changed > 0 || refused) void refresh();
  }, [changed, refused, refresh]);
  if (data) return <Shown key={id} view={data.approval} onChanged={() => void refresh()} />;
  if (error?.code === "NOT_FOUND" || error?.code === "VALIDATION_ERROR") {
    return (
      <section className="look">
        <Empty
          icon="inbox"
          title={t("approvals.gone")}
          command="runyard approvals list"
          action={<LinkButton to="/approvals">{t("approvals.toList")}</LinkButton>}
        >
          {t("approvals.goneHelp")}
        </Empty>
      </section>
    );
  }
  return (
    <section className="look" aria-busy={error === null}>
      <div className="look__body">
        {error ? <ErrorNote error={error} /> : <p className="muted">{t("approvals.loading")}</p>}
      </div>
    </section>
  );
}

function Shown({ view, onChanged }: { view: actions.ApprovalView; onChanged: () => void }) {
  const { view: run } = useRun(view.runId);
  const { actor } = useHub();
  const listed = fromList(view);
  const entry = run.approvals.find((one) => one.approvalId === view.id);
  // The run's own events say when and by whom; until they are here the hub's answer does.
  const streamed: Asked = entry === undefined ? listed : { ...later(fromEvents(entry, view.runId), listed), denied: listed.denied };
  const asked = useNewest(streamed);
  const body = useRef<HTMLDivElement>(null);
  const over = asked.state !== "open";
  useEffect(() => {
    if (over && view.state === "open") onChanged();
  }, [over, view.state]);
  useEffect(() => focusReview(body.current), [view.id]);
  useShortcut("r", "approvals.keys.open", () => body.current?.querySelector<HTMLElement>(".btn--review")?.click());
  useShortcut("a", "approvals.keys.focus", () => focusReview(body.current));
  return (
    <section className="look" aria-label={t(headingKey(asked.ask))} data-approval={asked.id}>
      <div className="look__body" ref={body}>
        <Head asked={asked} />
        <Exact asked={asked} heading />
        <Facts
          asked={asked}
          run={{
            sessionId: run.sessionId,
            state: run.state === "unknown" ? null : ` · ${stateText(run.state)}`,
            actor: actor?.id ?? null,
          }}
        />
        <p className="muted t12 look__bound">
          <Icon name="lock" small /> {t("approvals.bound", { digest: asked.digest.slice(0, 12) })}
        </p>
      </div>
      <Foot asked={asked} run={run} />
    </section>
  );
}

function Head({ asked }: { asked: Asked }) {
  const stake = stakeText(asked.ask);
  return (
    <div className="look__head">
      <div className="grow">
        <LinkButton className="look__back" kind="ghost" to="/approvals">
          {t("approvals.toList")}
        </LinkButton>
        <p className="row">
          <Risk risk={asked.risk} />
          {stake !== undefined && <span className="muted t12">{stake}</span>}
        </p>
        <h2 className="look__title">
          {asked.ask.kind === "question" ? t(headingKey(asked.ask)) : <LabelText asked={asked} />}
        </h2>
      </div>
      <ReviewLink asked={asked} inRun={false} large />
    </div>
  );
}

function Foot({ asked, run }: { asked: Asked; run: RunView }) {
  const facts: RunFacts = { onReject: run.onReject, sessionId: run.sessionId, carries: run.carries !== null };
  if (asked.state !== "open") {
    return (
      <div className="look__foot look__foot--over">
        <Outcome asked={asked} />
      </div>
    );
  }
  return (
    <div className="look__foot">
      <DecisionFoot asked={asked} facts={facts} large />
    </div>
  );
}
