// How far a yes reaches. Beyond its run it is a rule, and what that rule would allow is shown before it is meant.
import { useClient, useHub, type actions } from "@runyard/react";
import { useEffect, useId, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { ErrorNote, visible } from "../../ui";
import type { Asked } from "./asked";
import { ruleFor, SCOPES, scopesFor, type Scope } from "./label";

type Looked =
  | { kind: "looking" }
  | { kind: "rule"; rule: actions.PolicyAddOutput }
  | { kind: "failed"; error: { code: string; message: string } };

/** So many further things that a rule would allow are named. */
const ALSO_SHOWN = 8;

/** The choice of a scope, with what it means. */
export function ScopeChoice({ asked, sessionId, scope, onChange }: {
  asked: Asked;
  sessionId: string | null;
  scope: Scope;
  onChange: (scope: Scope) => void;
}) {
  useLanguage();
  const name = useId();
  const { can } = useHub();
  const offered = scopesFor(asked.ask, asked.redacted);
  if (offered.length === 1) return null;
  const shown = offered.length === SCOPES.length ? SCOPES : offered;
  const lasting = can("policy.write");
  return (
    <fieldset className="scope">
      <legend className="label">{t("approvals.scope.label")}</legend>
      <div className="seg scope__seg">
        {shown.map((one) => {
          const refused = !lasting && (one === "session" || one === "project");
          return (
            <label key={one} className={scope === one ? "on" : ""} title={refused ? t("approvals.scope.needsPolicy") : undefined}>
              <input
                type="radio"
                className="sr"
                name={name}
                value={one}
                checked={scope === one}
                disabled={refused}
                onChange={() => onChange(one)}
              />
              {t(`approvals.scope.${one}`)}
            </label>
          );
        })}
      </div>
      <ScopeMeans asked={asked} sessionId={sessionId} scope={scope} />
      {!offered.includes("project") && <p className="ask__why">{t("approvals.scope.onlyRun")}</p>}
      {!lasting && offered.includes("project") && <p className="ask__why">{t("approvals.scope.needsPolicy")}</p>}
    </fieldset>
  );
}

function ScopeMeans({ asked, sessionId, scope }: { asked: Asked; sessionId: string | null; scope: Scope }) {
  if (scope === "once") return <p className="ask__why">{t("approvals.scope.onceHelp")}</p>;
  if (scope === "run") return <p className="ask__why">{t("approvals.scope.runHelp")}</p>;
  return <Rule asked={asked} sessionId={sessionId} scope={scope} />;
}

function Rule({ asked, sessionId, scope }: { asked: Asked; sessionId: string | null; scope: "session" | "project" }) {
  const looked = useRule(asked, sessionId, scope);
  const about = { agent: asked.agentId, workspace: asked.workspace };
  return (
    <div className="scope__rule" aria-live="polite">
      <p>{t(scope === "session" ? "approvals.scope.sessionRule" : "approvals.scope.projectRule", about)}</p>
      {looked.kind === "looking" && <p className="muted">{t("approvals.scope.looking")}</p>}
      {looked.kind === "failed" && <ErrorNote error={{ issues: [], ...looked.error }} />}
      {looked.kind === "rule" && <Covered rule={looked.rule} />}
    </div>
  );
}

function Covered({ rule }: { rule: actions.PolicyAddOutput }) {
  const { covers, hint, preview } = rule;
  const changed = preview?.changed.reduce((sum, one) => sum + one.times, 0) ?? 0;
  const also = preview?.also.slice(0, ALSO_SHOWN) ?? [];
  return (
    <>
      <p>{t("approvals.scope.covers", { covers: visible(covers) })}</p>
      {hint && <p className="muted">{visible(hint)}</p>}
      {preview && (
        <p className="muted">
          {t(changed > 0 ? "approvals.scope.changed" : "approvals.scope.changedNone", { requests: preview.requests, count: changed })}
        </p>
      )}
      {also.length > 0 && (
        <p>
          {t("approvals.scope.also")}{" "}
          {also.map((one) => (
            <code key={one.what}>{visible(one.what)}</code>
          ))}
        </p>
      )}
    </>
  );
}

function useRule(asked: Asked, sessionId: string | null, scope: "session" | "project"): Looked {
  const client = useClient();
  const [looked, setLooked] = useState<Looked>({ kind: "looking" });
  const { ask, agentId, workspace } = asked;
  useEffect(() => {
    const says = ruleFor(ask);
    if (says === null) return;
    let current = true;
    setLooked({ kind: "looking" });
    const session = scope === "session" && sessionId !== null ? { session: sessionId } : {};
    const rule = { effect: "allow" as const, ...says, agent: agentId, workspace, scope, dryRun: true, ...session };
    void client.call("policy_add", rule, { confirm: true }).then((envelope) => {
      if (current) setLooked(envelope.ok ? { kind: "rule", rule: envelope.data } : { kind: "failed", error: envelope.error });
    });
    return () => {
      current = false;
    };
  }, [client, ask, agentId, workspace, sessionId, scope]);
  return looked;
}
