// How a request would be judged, and why. Nothing is done and nobody is asked.
import { useAction } from "@runyard/react";
import { useState, type FormEvent } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, ErrorNote, Risk, Segmented, SelectField, TextField, visible } from "../../ui";
import { parseJson } from "../../ui/schema-form";
import { isObject } from "../../ui/schema-form/json";
import { useAgents, useWorkspaces, type Answer } from "../system/data";
import { RulePreview } from "./preview";
import { EffectMark, Ticked } from "./words";

type What = "command" | "request" | "rule";

/** The form that asks the gate, and its answer. */
export function TestRequest() {
  useLanguage();
  const agents = useAgents();
  const workspaces = useWorkspaces();
  const test = useAction("policy_test");
  const [what, setWhat] = useState<What>("command");
  const [texts, setTexts] = useState<Record<What, string>>({ command: "", request: `{"kind": "network", "host": "example.org"}`, rule: "" });
  const [agent, setAgent] = useState("");
  const [workspace, setWorkspace] = useState("");
  const [problem, setProblem] = useState<string>();
  const agentList = agents.data?.agents ?? [];
  const workspaceList = workspaces.data?.workspaces ?? [];
  const asker = { agent: agent || agentList[0]?.id || null, workspace: workspace || workspaceList[0]?.label || null };
  const issue = (field: string) => test.error?.issues.find(({ path }) => path[0] === field)?.message;
  const ask = (event: FormEvent) => {
    event.preventDefault();
    setProblem(undefined);
    const text = texts[what].trim();
    if (what === "command") void test.invoke({ ...asker, command: text });
    if (what === "rule") void test.invoke({ rule: text });
    if (what !== "request") return;
    const parsed = parseJson(text);
    if (!parsed.ok) return setProblem(parsed.message);
    const kind = isObject(parsed.value) ? parsed.value["kind"] : undefined;
    if (!isObject(parsed.value) || typeof kind !== "string") return setProblem(t("policy.test.kindMissing"));
    void test.invoke({ ...asker, request: { ...parsed.value, kind } });
  };
  const options = (words: { value: string; label: string }[]) => (words.length ? words : [{ value: "", label: t("policy.test.nobody") }]);
  return (
    <form className="stack" onSubmit={ask} noValidate>
      <p className="muted">{t("policy.test.about")}</p>
      <Segmented
        label={t("policy.test.what")}
        value={what}
        options={(["command", "request", "rule"] as const).map((value) => ({ value, label: t(`policy.test.${value}`) }))}
        onChange={setWhat}
      />
      <TextField
        label={t(`policy.test.${what}`)}
        value={texts[what]}
        onChange={(text) => setTexts({ ...texts, [what]: text })}
        mono
        rows={what === "request" ? 4 : 2}
        placeholder={what === "rule" ? "allow shell cargo test *" : what === "command" ? "git push && rm -rf build" : "{}"}
        help={t(`policy.test.${what}Help`)}
        problem={problem ?? issue(what)}
      />
      {what !== "rule" && (
        <div className="pair">
          <SelectField
            label={t("policy.add.agent")}
            value={asker.agent ?? ""}
            options={options(agentList.map(({ id, label }) => ({ value: id, label })))}
            onChange={setAgent}
            problem={issue("agent")}
          />
          <SelectField
            label={t("policy.add.workspace")}
            value={asker.workspace ?? ""}
            options={options(workspaceList.map(({ label }) => ({ value: label, label })))}
            onChange={setWorkspace}
            problem={issue("workspace")}
          />
        </div>
      )}
      <div className="acts">
        <Button type="submit" kind="review" icon="eye" pending={test.status === "running"}>
          {t("policy.test.ask")} <span className="ro">{t("policy.add.readOnly")}</span>
        </Button>
      </div>
      {test.error && test.error.issues.length === 0 && <ErrorNote error={test.error} />}
      {test.status === "ok" && test.data && <Judged judged={test.data} />}
    </form>
  );
}

function Judged({ judged }: { judged: Answer<"policy_test"> }) {
  return (
    <section className="stack" aria-label={t("policy.test.result")}>
      <div className="row" role="status">
        <EffectMark effect={judged.effect} />
        {!judged.replay && <Risk risk={judged.risk} />}
        <span className="muted t12">{t("policy.test.byVersion", { version: judged.policyVersion })}</span>
      </div>
      <p>
        <Ticked text={judged.reason} />
      </p>
      {judged.parts.length > 0 && (
        <ul className="changes">
          {judged.parts.map((part, index) => (
            <li key={index}>
              <EffectMark effect={part.effect} />
              <span className="grow">
                <code>{visible(part.what)}</code>
                <span className="sub">{part.reason}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {judged.notes.map((note) => (
        <p key={note} className="muted">
          <Ticked text={note} />
        </p>
      ))}
      {judged.replay && <RulePreview preview={judged.replay} />}
    </section>
  );
}
