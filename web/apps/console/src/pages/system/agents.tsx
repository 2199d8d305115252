// Agent profiles and backends: what can be picked, what bounds it, and whether it could be used now.
import { useAction } from "@runyard/react";
import { useState } from "react";
import { maybe, plural, t, useLanguage } from "../../i18n";
import { Button, durationText, Empty, ErrorNote, Icon, KeyValue, PageHead, visible } from "../../ui";
import { own } from "../../ui/schema-form/json";
import { useAgents, useBackends, type Agent, type Answer, type Backend } from "./data";
import { Chips, isRead, Read, Section, UNKNOWN_COUNT } from "./section";

/** The page of agent profiles and backends. */
export function AgentsPage() {
  useLanguage();
  const agents = useAgents();
  const backends = useBackends();
  // The last result of each backend stays until the next one is there.
  const [checked, setChecked] = useState<Readonly<Record<string, Checked>>>({});
  return (
    <>
      <PageHead
        title={t("system.agents.title")}
        count={agents.data ? plural(agents.data.agents.length, "system.agents.countOne", "system.agents.count") : UNKNOWN_COUNT}
      />
      <div className="page scroll">
        <Section title={t("system.agents.profiles")} about={t("system.agents.about")}>
          <Read reading={agents}>
            {({ agents: found }) =>
              found.length === 0 ? (
                <Empty icon="agent" title={t("system.agents.none")} command="runyard init">
                  {t("system.agents.noneAbout")}
                </Empty>
              ) : (
                <div className="panels">
                  {found.map((agent) => (
                    <AgentPanel key={agent.id} agent={agent} last={checked[agent.backendProfile]} />
                  ))}
                </div>
              )
            }
          </Read>
        </Section>
        {isRead(agents) && (
          <Section title={t("system.backends.title")} about={t("system.backends.about")}>
            <Read reading={backends}>
              {({ backends: found }) => (
                <div className="panels panels--wide">
                  {found.map((backend) => (
                    <BackendPanel
                      key={backend.profile}
                      backend={backend}
                      last={checked[backend.profile]}
                      onChecked={(found) => setChecked((before) => ({ ...before, [backend.profile]: found }))}
                    />
                  ))}
                </div>
              )}
            </Read>
          </Section>
        )}
      </div>
    </>
  );
}

/** A word or number of the execution policy, as it is given. */
function said(agent: Agent, ...names: string[]): string {
  const found = names.reduce<unknown>(own, agent.executionPolicy);
  return typeof found === "string" || typeof found === "number" ? String(found) : "";
}

/** What a check of a backend found, and when. */
interface Checked {
  at: string;
  found: Answer<"backend_check">;
}

/** Where the panel of a backend is. */
const placeOf = (profile: string): string => `backend-${profile}`;

function AgentPanel({ agent, last }: { agent: Agent; last: Checked | undefined }) {
  const word = (name: string) => maybe(`system.${name}.${said(agent, name)}`) ?? (said(agent, name) || undefined);
  return (
    <article className="panel" aria-label={visible(agent.label)}>
      <h3 className="panel__head">
        <Icon name="agent" />
        {visible(agent.label)} {agent.id !== agent.label && <code className="muted">{visible(agent.id)}</code>}
        <span className="grow" />
        {last === undefined ? (
          <a className="t12" href={`#${placeOf(agent.backendProfile)}`}>
            {t("system.agents.unchecked")}
          </a>
        ) : (
          <Verdict ok={last.found.ok} />
        )}
      </h3>
      <div className="pad">
        <KeyValue
          wide
          pairs={[
            [t("system.agents.backend"), <code key="backend">{agent.backendProfile}</code>],
            [t("system.agents.preset"), maybe(`system.preset.${agent.preset}`) ?? agent.preset],
            [t("system.agents.capabilities"), <Chips key="can" words={agent.capabilities} />],
            [t("system.agents.sandbox"), <code key="sandbox">{said(agent, "sandbox")}</code>],
            [t("system.agents.network"), word("network")],
            [t("system.agents.approval"), word("approval")],
            [t("system.agents.onReject"), maybe(`system.onReject.${agent.onReject}`) ?? agent.onReject],
            [t("system.agents.limits"), limits(agent)],
          ]}
        />
      </div>
    </article>
  );
}

function limits(agent: Agent): string {
  // `1h` and not `1h 00m`: limits are mostly round.
  const time = (name: string) => durationText(Number(said(agent, name))).replace(/ 00[a-z]$/, "");
  const parts = [plural(agent.runsMax, "system.agents.runsMaxOne", "system.agents.runsMax")];
  if (said(agent, "timeoutMs")) parts.push(t("system.agents.timeout", { time: time("timeoutMs") }));
  if (said(agent, "idleMs")) parts.push(t("system.agents.idle", { time: time("idleMs") }));
  if (said(agent, "budget", "costUsd")) parts.push(`$${said(agent, "budget", "costUsd")}`);
  if (said(agent, "budget", "tokens")) parts.push(t("common.tokens", { count: said(agent, "budget", "tokens") }));
  return parts.join(" · ");
}

function BackendPanel({ backend, last, onChecked }: { backend: Backend; last: Checked | undefined; onChecked: (found: Checked) => void }) {
  const check = useAction("backend_check");
  const run = async () => {
    const envelope = await check.invoke({ profile: backend.profile });
    if (envelope?.ok) onChecked({ at: new Date().toISOString(), found: envelope.data });
  };
  const { credentials } = backend.isolation;
  const resumes = String(backend.capabilities.resumes);
  const command = backend.command.join(" ") || undefined;
  const secrets = [
    ...backend.requiredSecretKeys,
    ...backend.optionalSecretKeys.map((key) => t("system.backends.optional", { key })),
  ];
  return (
    <article className="panel" id={placeOf(backend.profile)} aria-label={backend.profile}>
      <h3 className="panel__head">
        <Icon name="terminal" />
        {backend.profile} <code className="muted trunc">{backend.backendKind}</code>
        <span className="grow" />
        {last && <Verdict ok={last.found.ok} />}
      </h3>
      <div className="pad">
        <KeyValue
          wide
          pairs={[
            [t("system.backends.protocol"), <code key="protocol">{`${backend.protocol} · ${backend.transport}`}</code>],
            [t("system.backends.command"), command && <code key="command">{command}</code>],
            [t("system.backends.model"), backend.model && <code key="model">{backend.model}</code>],
            [t("system.backends.provider"), backend.baseUrl && <code key="url">{backend.baseUrl}</code>],
            [t("system.backends.secrets"), secrets.length ? <Chips key="secrets" words={secrets} /> : t("system.backends.noSecrets")],
            [t("system.backends.credentials"), maybe(`system.credentials.${credentials}`) ?? credentials],
            [t("system.backends.sandbox"), backend.isolation.sandbox],
            [t("system.backends.network"), backend.isolation.network],
            [t("system.backends.resumes"), maybe(`system.resumes.${resumes}`) ?? resumes],
          ]}
        />
        {check.error && <ErrorNote error={check.error} />}
        {last && <Checks found={last.found} at={last.at} />}
        <div className="acts">
          <Button icon="shield" pending={check.status === "running"} onClick={() => void run()}>
            {t("system.effect.check", { profile: backend.profile })}
          </Button>
          {check.status === "running" && <Button kind="ghost" onClick={check.cancel}>{t("system.backends.stop")}</Button>}
        </div>
      </div>
    </article>
  );
}

function Verdict({ ok }: { ok: boolean }) {
  return (
    <span className={`verdict ${ok ? "verdict--ok" : "verdict--bad"}`}>
      <Icon name={ok ? "completed" : "failed"} small />
      {t(ok ? "system.backends.ready" : "system.backends.missing")}
    </span>
  );
}

function Checks({ found, at }: { found: Answer<"backend_check">; at: string }) {
  return (
    <div className="checks" role="status">
      <p
        className="label">{t("system.backends.checked", { edge: found.edge, time: new Date(at).toLocaleTimeString("en-GB") })}</p
      >
      <ul>
        {found.checks.map((line) => (
          <li key={line.check} className={line.ok ? "is-ok" : "is-bad"}>
            <Icon name={line.ok ? "check" : "x"} small />
            <div>
              <b>{maybe(`system.check.${line.check}`) ?? line.check}</b> {line.found}
              {line.next && <p className="muted">{line.next}</p>}
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}
