// The sessions: conversations that runs share. Closing one removes what agents keep of it; what was recorded stays.
import { useAction, useHub } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { t, useLanguage } from "../../i18n";
import { announce, Button, Clock, effect, Empty, StatePill, visible } from "../../ui";
import type { Session, useSessions } from "./data";
import { EffectDialog } from "./effect-dialog";
import { Read, Section } from "./section";

const ENDS: readonly string[] = ["completed", "failed", "cancelled"];

/** The list of sessions. */
export function Sessions({ sessions }: { sessions: ReturnType<typeof useSessions> }) {
  useLanguage();
  const [closing, setClosing] = useState<Session | null>(null);
  const { can } = useHub();
  const refusal = can("runs.write") ? undefined : t("system.needs", { permission: "runs.write" });
  return (
    <Section title={t("system.sessions.title")} about={t("system.sessions.about")}>
      <Read reading={sessions}>
        {({ sessions: found }) =>
          found.length === 0 ? (
            <Empty icon="message" title={t("system.sessions.none")} command={`runyard run "Fix the typo in docs/config.md"`}>
              {t("system.sessions.noneAbout")}
            </Empty>
          ) : (
            <table className="list">
              <thead>
                <tr>
                  <th scope="col">{t("system.sessions.session")}</th>
                  <th scope="col">{t("system.sessions.lastRun")}</th>
                  <th scope="col">{t("system.sessions.state")}</th>
                  <th scope="col" className="num">
                    {t("system.sessions.runs")}
                  </th>
                  <th scope="col">{t("system.sessions.lastEvent")}</th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {found.map((session) => (
                  <Row key={session.id} session={session} refusal={refusal} onClose={() => setClosing(session)} />
                ))}
              </tbody>
            </table>
          )
        }
      </Read>
      {closing && <CloseSession session={closing} onClose={() => setClosing(null)} onClosed={sessions.refresh} />}
    </Section>
  );
}

function Row({ session, refusal, onClose }: { session: Session; refusal: string | undefined; onClose: () => void }) {
  const active = ENDS.includes(session.state) ? undefined : t("system.sessions.active");
  return (
    <tr>
      <th scope="row">
        <code>{session.id}</code>
        <span className="sub">{visible(`${session.agentId} · ${session.workspace.label}`)}</span>
      </th>
      <td data-label={t("system.sessions.lastRun")}>
        <Link to="/runs/$id" params={{ id: session.lastRunId }}>
          <code>{session.lastRunId}</code>
        </Link>
      </td>
      <td data-label={t("system.sessions.state")}>
        <StatePill state={session.state} />
      </td>
      <td className="num" data-label={t("system.sessions.runs")}>
        {session.runs}
      </td>
      <td data-label={t("system.sessions.lastEvent")}>
        <Clock at={session.lastEventAt} day />
      </td>
      <td className="end">
        <Button kind="reject" disabledReason={refusal ?? active} onClick={onClose}>
          {t("system.effect.closeSessionAsk")}
        </Button>
      </td>
    </tr>
  );
}

function CloseSession({ session, onClose, onClosed }: { session: Session; onClose: () => void; onClosed: () => void }) {
  const close = useAction("session_close", { outlives: true });
  const run = async () => {
    const envelope = await close.invoke({ id: session.id });
    if (!envelope?.ok) return;
    announce(t("system.sessions.closed", { id: session.id }));
    onClosed();
    onClose();
  };
  return (
    <EffectDialog
      title={t("system.sessions.closeTitle")}
      label={effect("system.effect.closeSession", { id: session.id })}
      keep={t("system.sessions.keep")}
      pending={close.status === "running"}
      error={close.error}
      onEffect={() => void run()}
      onClose={onClose}
    >
      <p>{t("system.sessions.closeMeans")}</p>
      <p className="muted">{t("system.sessions.closeNotMeans")}</p>
    </EffectDialog>
  );
}
