// What may be changed for one run. Left alone, the agent profile's own holds, and each field says what that is.
import type { actions } from "@runyard/react";
import { maybe, t, type Key } from "../../i18n";
import { SelectField, TextField } from "../../ui";
import type { FieldHandle } from "./use-new-run";
import { changedOptions, policyIn, type Draft, type Policy } from "./draft";

type Agent = actions.AgentView;


const CHOICES = {
  sandbox: {
    values: ["read-only", "workspace-write", "none"],
    words: "runs.create.sandboxes",
    label: "runs.create.sandbox",
    help: "runs.create.sandboxHelp",
  },
  network: {
    values: ["deny", "ask", "allow"],
    words: "runs.create.networks",
    label: "runs.create.network",
    help: "runs.create.networkHelp",
  },
  approval: { values: ["ask", "never"], words: "runs.create.approvals", label: "runs.create.approval", help: "runs.create.approvalHelp" },
  changes: { values: ["ask", "keep"], words: "runs.create.changesOptions", label: "runs.create.changes", help: "runs.create.changesHelp" },
} as const satisfies Record<string, { values: readonly string[]; words: string; label: Key; help: Key }>;

const LIMITS = {
  costUsd: { label: "runs.create.costUsd", help: "runs.create.costHelp" },
  tokens: { label: "runs.create.tokens", help: "runs.create.tokensHelp" },
  timeout: { label: "runs.create.timeout", help: "runs.create.timeoutHelp" },
  keepOpen: { label: "runs.create.keepOpen", help: "runs.create.keepOpenHelp" },
} as const satisfies Record<string, { label: Key; help: Key }>;

const MINUTE_MS = 60_000;

/** What the profile itself says, as somebody would type it. */
function ownLimit(own: Policy, name: keyof typeof LIMITS): string {
  const budget = typeof own.budget === "string" ? { costUsd: own.budget } : own.budget;
  const minutes = (ms: number | null | undefined) => (ms ? ms / MINUTE_MS : undefined);
  const values = { costUsd: budget?.costUsd, tokens: budget?.tokens, timeout: minutes(own.timeoutMs), keepOpen: minutes(own.keepOpenMs) };
  return values[name]?.toString() ?? "";
}

/** The options, folded until somebody wants them or one of them is wrong. */
export function Options({ draft, agent, fields, change }: {
  draft: Draft;
  agent: Agent | undefined;
  fields: (field: keyof Draft) => FieldHandle;
  change: (part: Partial<Draft>) => void;
}) {
  const changed = changedOptions(draft);
  const own = policyIn(agent?.executionPolicy);
  return (
    <details className="options" open={changed > 0 || undefined}>
      <summary>{changed === 0 ? t("runs.create.options") : t("runs.create.optionsChanged", { count: changed })}</summary>
      <div className="form__grid">
        {(["sandbox", "network", "approval", "changes"] as const).map((name) => {
          const { values, words, label, help } = CHOICES[name];
          const word = (value: string) => maybe(`${words}.${value}`) ?? value;
          const given = own[name] ?? (name === "changes" ? "ask" : "");
          return (
            <SelectField<string>
              key={name}
              label={t(label)}
              help={t(help)}
              value={draft[name]}
              problem={fields(name).problem}
              onChange={(value) => change({ [name]: value })}
              options={[
                { value: "", label: t("runs.create.profileDefault", { value: word(given) }) },
                ...values.map((value) => ({ value, label: word(value) })),
              ]}
            />
          );
        })}
        {(["costUsd", "tokens", "timeout", "keepOpen"] as const).map((name) => (
          <TextField
            key={name}
            {...fields(name)}
            label={t(LIMITS[name].label)}
            help={t(LIMITS[name].help)}
            placeholder={ownLimit(own, name)}
            inputMode={name === "costUsd" ? "decimal" : "numeric"}
          />
        ))}
      </div>
      {agent && (
        <p className="muted">
          {t("runs.create.onReject", {
            what: t(agent.onReject === "cancel" ? "runs.create.onRejectCancel" : "runs.create.onRejectContinue"),
          })}
        </p>
      )}
    </details>
  );
}
