// Adding a rule: first what else it would change, then storing it. What was looked at is what is stored.
import { useAction, type Failing } from "@runyard/react";
import { useState, type FormEvent } from "react";
import { t, useLanguage } from "../../i18n";
import { announce, Button, effect, EffectButton, ErrorNote, Field, Icon, Segmented, SelectField, TextField } from "../../ui";
import { useAgents, useWorkspaces, type Answer } from "../system/data";
import { RulePreview } from "./preview";
import { EFFECTS, kindText, KINDS, ruleText, SCOPES, Ticked, type EffectWord, type Rule } from "./words";

interface Draft {
  effect: EffectWord;
  kind: Rule["kind"];
  match: string;
  agent: string;
  workspace: string;
  scope: Rule["scope"];
  run: string;
  session: string;
  expires: string;
}

const NOTHING = { match: "", agent: "", workspace: "", run: "", session: "", expires: "" };
const EMPTY: Draft = { ...NOTHING, effect: "allow", kind: "shell", scope: "always" };

/** The input of the action, without what is empty or does not belong to the scope. */
function inputOf(draft: Draft) {
  const { effect, kind, match, agent, workspace, scope, run, session, expires } = draft;
  return {
    effect,
    kind,
    scope,
    ...(match.trim() && { match: match.trim() }),
    ...(agent && { agent }),
    ...(workspace && { workspace }),
    ...((scope === "run" || scope === "once") && run.trim() && { run: run.trim() }),
    ...(scope === "session" && session.trim() && { session: session.trim() }),
    ...(expires.trim() && { expires: expires.trim() }),
  };
}

/** The form of a new rule. */
export function AddRule({ refusal, onAdded }: { refusal: string | undefined; onAdded: () => void }) {
  useLanguage();
  const add = useAction("policy_add", { outlives: true });
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [looked, setLooked] = useState<{ input: string; answer: Answer<"policy_add"> } | null>(null);
  const [added, setAdded] = useState<Rule | null>(null);
  const input = inputOf(draft);
  const key = JSON.stringify(input);
  const preview = looked?.input === key ? looked.answer : null;
  const look = async (event: FormEvent) => {
    event.preventDefault();
    setAdded(null);
    const envelope = await add.invoke({ ...input, dryRun: true });
    setLooked(envelope?.ok ? { input: key, answer: envelope.data } : null);
  };
  const store = async () => {
    const envelope = await add.invoke(input);
    if (!envelope?.ok) return;
    announce(t("policy.added", { rule: ruleText(envelope.data.rule) }));
    setAdded(envelope.data.rule);
    setLooked(null);
    setDraft({ ...EMPTY, effect: draft.effect, kind: draft.kind });
    onAdded();
  };
  const running = add.status === "running";
  return (
    <form className="stack" onSubmit={(event) => void look(event)} noValidate>
      <p className="muted">{t("policy.add.about")}</p>
      <RuleFields draft={draft} onChange={(next) => setDraft({ ...draft, ...next })} error={add.error} />
      <div className="acts">
        <Button type="submit" kind="review" icon="eye" pending={running && !preview}>
          {t("policy.add.look")} <span className="ro">{t("policy.add.readOnly")}</span>
        </Button>
      </div>
      {add.error && add.error.issues.length === 0 && <ErrorNote error={add.error} />}
      {added && (
        <p className="done" role="status">
          <Icon name="completed" />
          <span>
            {t("policy.added", { rule: "" })} <code>{ruleText(added)}</code>
          </span>
        </p>
      )}
      {preview && (
        <section className="stack" aria-label={t("policy.add.previewTitle")}>
          <h3>{t("policy.add.previewTitle")}</h3>
          <p>
            <Ticked text={t("policy.add.covers", { covers: preview.covers })} />
          </p>
          {preview.hint !== undefined && (
            <p className="muted">
              <Ticked text={t("policy.add.hint", { hint: preview.hint })} />
            </p>
          )}
          {preview.preview && <RulePreview preview={preview.preview} />}
          <p className="muted">{t("policy.add.atOnce")}</p>
          <div className="acts">
            <EffectButton
              label={effect("policy.effect.add", {}, ruleText(input))}
              pending={running}
              disabledReason={refusal}
              onClick={() => void store()}
            />
          </div>
        </section>
      )}
    </form>
  );
}

function RuleFields({ draft, onChange, error }: { draft: Draft; onChange: (next: Partial<Draft>) => void; error: Failing | null }) {
  const agents = useAgents();
  const workspaces = useWorkspaces();
  const issue = (field: string) => error?.issues.find(({ path }) => path[0] === field)?.message;
  const everyone = { value: "", label: t("policy.add.every") };
  return (
    <>
      <Field label={t("policy.add.effect")} problem={issue("effect")}>
        {() => (
          <Segmented
            label={t("policy.add.effect")}
            value={draft.effect}
            options={EFFECTS.map((value) => ({ value, label: t(`policy.word.${value}`) }))}
            onChange={(effect) => onChange({ effect })}
          />
        )}
      </Field>
      <SelectField
        label={t("policy.add.kind")}
        value={draft.kind}
        options={KINDS.map((value) => ({ value, label: kindText(value) }))}
        onChange={(kind) => onChange({ kind })}
        problem={issue("kind")}
      />
      <TextField
        label={t("policy.add.match")}
        value={draft.match}
        onChange={(match) => onChange({ match })}
        mono
        optional={t("system.optional")}
        help={t("policy.add.matchHelp")}
        autoComplete="off"
        problem={issue("match")}
      />
      <div className="pair">
        <SelectField
          label={t("policy.add.agent")}
          value={draft.agent}
          options={[everyone, ...(agents.data?.agents ?? []).map(({ id, label }) => ({ value: id, label }))]}
          onChange={(agent) => onChange({ agent })}
          problem={issue("agent")}
        />
        <SelectField
          label={t("policy.add.workspace")}
          value={draft.workspace}
          options={[everyone, ...(workspaces.data?.workspaces ?? []).map(({ label }) => ({ value: label, label }))]}
          onChange={(workspace) => onChange({ workspace })}
          problem={issue("workspace")}
        />
      </div>
      <SelectField
        label={t("policy.add.scope")}
        value={draft.scope}
        options={SCOPES.map((value) => ({ value, label: t(`policy.scope.${value}`) }))}
        onChange={(scope) => onChange({ scope })}
        problem={issue("scope")}
      />
      {(draft.scope === "run" || draft.scope === "once") && (
        <TextField
          label={t("policy.add.run")}
          value={draft.run}
          onChange={(run) => onChange({ run })}
          mono
          autoComplete="off"
          placeholder="run_…"
          problem={issue("run")}
        />
      )}
      {draft.scope === "session" && (
        <TextField
          label={t("policy.add.session")}
          value={draft.session}
          onChange={(session) => onChange({ session })}
          mono
          autoComplete="off"
          placeholder="ses_…"
          problem={issue("session")}
        />
      )}
      <TextField
        label={t("policy.add.expires")}
        value={draft.expires}
        onChange={(expires) => onChange({ expires })}
        mono
        autoComplete="off"
        optional={t("system.optional")}
        placeholder="2027-01-31T12:00:00Z"
        problem={issue("expires")}
      />
    </>
  );
}
