// How far a yes reaches. Beyond its run it is a rule, and what that rule would allow is shown before it is meant.
import { useClient, useHub, type actions } from "@runyard/react";
import { useEffect, useId, useRef, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { ErrorNote, exact, Sentence, visible } from "../../ui";
import type { Asked } from "./asked";
import { ruleFor, SCOPES, scopesFor, type Scope } from "./label";

/** What is known of the rule that a yes would be. */
export type Looked =
  /** It would be none. */
  | { kind: "none" }
  | { kind: "looking" }
  | { kind: "rule"; rule: actions.PolicyAddOutput }
  | { kind: "failed"; error: { code: string; message: string } };

/** So many further things that a rule would allow are named. */
const ALSO_SHOWN = 8;

/** The choice of a scope, with what it means. */
export function ScopeChoice({ asked, looked, scope, onChange }: {
  asked: Asked;
  looked: Looked;
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
      <ScopeMeans asked={asked} looked={looked} scope={scope} />
      {!offered.includes("project") && <p className="ask__why">{t("approvals.scope.onlyRun")}</p>}
      {!lasting && offered.includes("project") && <p className="ask__why">{t("approvals.scope.needsPolicy")}</p>}
    </fieldset>
  );
}

function ScopeMeans({ asked, looked, scope }: { asked: Asked; looked: Looked; scope: Scope }) {
  if (scope === "once") return <p className="ask__why">{t("approvals.scope.onceHelp")}</p>;
  if (scope === "run") return <p className="ask__why">{t("approvals.scope.runHelp")}</p>;
  const about = { agent: visible(asked.agentId), workspace: visible(asked.workspace) };
  return (
    <div className="scope__rule" aria-live="polite">
      <p>{t(scope === "session" ? "approvals.scope.sessionRule" : "approvals.scope.projectRule", about)}</p>
      {looked.kind === "looking" && <p className="muted">{t("approvals.scope.looking")}</p>}
      {looked.kind === "failed" && (
        <>
          <p>{t("approvals.scope.notLooked")}</p>
          <ErrorNote error={{ issues: [], ...looked.error }} />
        </>
      )}
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
      <p>
        <Sentence text={t("approvals.scope.covers", { covers: exact(covers) })} />
      </p>
      {hint && (
        <p className="muted">
          <Sentence text={visible(hint)} />
        </p>
      )}
      {preview && (
        <p className="muted">
          {t(changed > 0 ? "approvals.scope.changed" : "approvals.scope.changedNone", { requests: preview.requests, count: changed })}
        </p>
      )}
      {also.length > 0 && (
        <p>
          {t("approvals.scope.also")}{" "}
          {also.map((one) => (
            <code key={one.what}>{exact(one.what)}</code>
          ))}
        </p>
      )}
    </>
  );
}

const isLasting = (scope: Scope): scope is "session" | "project" => scope === "session" || scope === "project";

/** What the rule would allow that a yes of this scope is, as the hub says it. */
export function useRule(asked: Asked, sessionId: string | null, scope: Scope): Looked {
  const client = useClient();
  const [found, setFound] = useState<{ for: string; looked: Looked } | null>(null);
  const { ask, agentId, workspace } = asked;
  const says = isLasting(scope) ? ruleFor(ask) : null;
  const session = scope === "session" && sessionId !== null ? { session: sessionId } : {};
  const rule = says && isLasting(scope) && { effect: "allow" as const, ...says, agent: agentId, workspace, scope, dryRun: true, ...session };
  const wanted = rule ? JSON.stringify(rule) : null;
  const wantedRule = useRef(rule);
  wantedRule.current = rule;
  useEffect(() => {
    if (wanted === null || !wantedRule.current) return;
    let current = true;
    void client.call("policy_add", wantedRule.current, { confirm: true }).then((envelope) => {
      const looked: Looked = envelope.ok ? { kind: "rule", rule: envelope.data } : { kind: "failed", error: envelope.error };
      if (current) setFound({ for: wanted, looked });
    });
    return () => {
      current = false;
    };
  }, [client, wanted]);
  if (!isLasting(scope)) return { kind: "none" };
  // An answer to another question is none.
  return found !== null && found.for === wanted ? found.looked : { kind: "looking" };
}
