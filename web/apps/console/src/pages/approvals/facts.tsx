// What surrounds a request: where, why, until when, and how it was decided.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { maybe, t, useLanguage } from "../../i18n";
import { told } from "../../i18n/known";
import { Clock, clockText, durationText, exactName, Icon, KeyValue, useNow, visible } from "../../ui";
import type { Asked } from "./asked";
import { asText } from "./question";
import type { Ask } from "./request";

/** Where it would happen, in words. */
export function placeText(asked: Asked): string {
  const { ask } = asked;
  const workspace = visible(asked.workspace);
  if (ask.kind === "shell" && ask.cwd !== "." && ask.cwd !== "") {
    return t("approvals.facts.checkoutAt", { path: exactName(ask.cwd), workspace });
  }
  return t("approvals.facts.checkout", { workspace });
}

/** What it is brought to. */
export function targetText(ask: Extract<Ask, { kind: "apply" }>): string {
  if (ask.to.kind === "branch") return t("approvals.facts.toBranch");
  return t(ask.to.kind === "commit" ? "approvals.facts.toCommit" : "approvals.facts.toFiles");
}

/** What of it goes far, in a phrase. */
export function stakeText(ask: Ask): string | undefined {
  if (ask.kind === "repeat") return t("approvals.stake.once");
  if (ask.kind === "action") return ask.sideEffects === "destructive" ? t("approvals.stake.destructive") : undefined;
  if ((ask.kind === "read" || ask.kind === "write") && ask.path.startsWith("/")) return t("approvals.stake.outside");
  return maybe(`approvals.stake.${ask.kind}`);
}

/** How long it still can be answered. */
export function Expiry({ asked }: { asked: Asked }) {
  useLanguage();
  const left = Date.parse(asked.expiresAt) - useNow();
  const words = left > 0 ? t("approvals.expiresIn", { time: durationText(left) }) : t("approvals.decided.expired");
  return <span className="num">{words}</span>;
}

/** The facts of an approval in two columns. */
export function Facts({ asked, run }: {
  asked: Asked;
  run: { sessionId: string | null; state: ReactNode; actor: string | null };
}) {
  useLanguage();
  const left = Date.parse(asked.expiresAt) - useNow();
  const { ask } = asked;
  const open = asked.state === "open";
  const own: [string, ReactNode][] =
    ask.kind === "apply"
      ? [
          [t("approvals.facts.to"), targetText(ask)],
          [t("approvals.facts.base"), <Revision key="b" id={ask.base} />],
        ]
      : [[t("approvals.facts.in"), placeText(asked)]];
  const unanswered = open && left > 0 ? t("approvals.facts.rejectedIn", { time: durationText(left) }) : undefined;
  const until = open && asked.snoozedUntil !== null ? t("approvals.snoozedUntil", { time: clockText(asked.snoozedUntil) }) : undefined;
  return (
    <div className="two">
      <KeyValue
        pairs={[
          ...own,
          [t("approvals.facts.because"), visible(told(asked.reason))],
          [t("approvals.facts.recorded"), run.actor === null ? undefined : t("approvals.facts.actsAs", { actor: run.actor })],
          [t("approvals.facts.ifUnanswered"), unanswered],
          [t("approvals.snooze.label"), until],
        ]}
      />
      <KeyValue
        pairs={[
          [
            t("approvals.facts.run"),
            <span key="run">
              <Link to="/runs/$id" params={{ id: asked.runId }} className="mono">
                {shortId(asked.runId)}
              </Link>
              {run.state}
            </span>,
          ],
          [t("approvals.facts.agent"), visible(asked.agentId)],
          [t("approvals.facts.workspace"), visible(asked.workspace)],
          [t("approvals.facts.asked"), asked.askedAt === null ? undefined : <Asking key="asked" asked={asked} />],
          [t("approvals.facts.session"), run.sessionId === null ? undefined : <code key="s">{shortId(run.sessionId)}</code>],
        ]}
      />
    </div>
  );
}

function Asking({ asked }: { asked: Asked }) {
  if (asked.askedAt === null) return null;
  return (
    <>
      <Clock at={asked.askedAt} />
      {asked.sequence !== null && (
        <>
          {" · "}
          <Link to="/runs/$id" params={{ id: asked.runId }} hash={`seq=${asked.sequence}`}>
            #{asked.sequence}
          </Link>
        </>
      )}
    </>
  );
}

/** A commit or tree, as short as people name them; the whole of it is its title. */
export function Revision({ id }: { id: string }) {
  return /^[0-9a-f]{20,}$/.test(id) ? <code title={id}>{id.slice(0, 12)}</code> : <code>{visible(id)}</code>;
}

/** An id so short that it fits and can still be told apart; the whole of it is its title elsewhere. */
export function shortId(id: string): string {
  const [prefix = "", rest = ""] = id.split("_");
  return rest.length > 10 ? `${prefix}_${rest.slice(0, 6)}…${rest.slice(-4)}` : id;
}

/** How it ended, in a sentence. */
export function decidedText(asked: Asked): string {
  const actor = visible(asked.decided?.by ?? "");
  switch (asked.state) {
    case "approved":
      return t("approvals.decided.approved", { actor });
    case "rejected":
      return t(asked.decided?.revise ? "approvals.decided.revised" : "approvals.decided.rejected", { actor });
    case "expired":
      return t("approvals.decided.expired");
    case "withdrawn":
      return t("approvals.decided.withdrawn");
    case "open":
      return t("approvals.decided.open");
  }
}

/** Who decided, when and why. It stays for good. */
export function DecidedLine({ asked }: { asked: Asked }) {
  useLanguage();
  const { decided } = asked;
  const yes = asked.state === "approved";
  return (
    <p className={`decided decided--${yes ? "yes" : "no"}`}>
      <Icon name={yes ? "completed" : "cancelled"} small />
      <span>
        {decidedText(asked)}
        {decided?.at && (
          <>
            {" · "}
            <Clock at={decided.at} day />
          </>
        )}
        {decided?.sequence != null && (
          <>
            {" · "}
            <Link to="/runs/$id" params={{ id: asked.runId }} hash={`seq=${decided.sequence}`}>
              #{decided.sequence}
            </Link>
          </>
        )}
        {decided?.scope && decided.scope !== "once" && ` · ${maybe(`approvals.scope.${decided.scope}`) ?? decided.scope}`}
        {decided?.answer !== undefined && ` · ${visible(asText(decided.answer))}`}
        {decided?.reason && <> · {t("approvals.decided.reason", { reason: visible(decided.reason) })}</>}
      </span>
    </p>
  );
}
