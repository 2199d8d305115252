// A new run: what, by whom, where. Everything else is the agent profile's own unless it is changed here.
import { Link, useSearch } from "@tanstack/react-router";
import { useData } from "@runyard/react";
import { taskTitle } from "../../app/run-title";
import { t, useLanguage } from "../../i18n";
import { Button, effect, Empty, ErrorNote, Kbd, PageHead, SelectField, TextField, useShortcut, visible } from "../../ui";
import { EMPTY, loadDraft, type Draft } from "./draft";
import { Options } from "./options";
import { useNewRun, type Mode, type NewRunHandle, type Origin } from "./use-new-run";

const TITLES = { new: "runs.create.title", again: "runs.create.again", goOn: "runs.create.goesOn" } as const;
const LABELS = { new: "runs.effect.start", again: "runs.effect.startAgain", goOn: "runs.effect.goOn" } as const;

/** The form, with what a run that it starts from brings along. */
export function NewRunPage() {
  useLanguage();
  const { from, mode, agent, workspace } = useSearch({ from: "/runs/new" });
  if (from !== undefined) return <FromRun key={`${from} ${mode}`} id={from} mode={mode === "continue" ? "goOn" : "again"} />;
  return <NewRun mode="new" start={{ ...loadDraft(), ...(agent && { agent }), ...(workspace && { workspace }) }} />;
}

/** The same task once more, or a further run in the same session. */
function FromRun({ id, mode }: { id: string; mode: Mode }) {
  const { data, error } = useData("run_show", { id });
  if (data) {
    const { task, agentId, workspace } = data.run;
    const text = mode === "again" && typeof task === "string" ? task : "";
    const start = { ...EMPTY, task: text, agent: agentId, workspace: workspace.id };
    return <NewRun mode={mode} from={{ id, title: taskTitle(task) }} start={start} />;
  }
  return (
    <>
      <PageHead title={t(TITLES[mode])} />
      {error && (
        <div className="form scroll">
          <p className="muted">{t("runs.create.fromMissing")}</p>
          <ErrorNote error={error} />
        </div>
      )}
    </>
  );
}

function NewRun({ mode, from, start }: { mode: Mode; from?: Origin; start: Draft }) {
  const run = useNewRun(mode, from, start);
  useShortcut("mod+enter", "runs.keys.start", () => void run.submit());
  return (
    <>
      <PageHead title={t(TITLES[mode])} count={mode === "new" ? t("runs.create.draft") : undefined} />
      <div className="scroll grow">
        {run.workspaces?.length === 0 ? (
          <div className="center">
            <Empty icon="folder" title={t("runs.create.noWorkspace.title")} command="runyard workspaces add .">
              {t("runs.create.noWorkspace.text")}
            </Empty>
          </div>
        ) : (
          <Form run={run} mode={mode} from={from} />
        )}
      </div>
    </>
  );
}

function Form({ run, mode, from }: { run: NewRunHandle; mode: Mode; from: Origin | undefined }) {
  const { draft, agent, workspace, fields } = run;
  // The choices say more about themselves once they are there: what stands below comes then, and does not move.
  const known = (run.agents && run.workspaces) !== undefined || run.errors.length > 0;
  const label = effect(LABELS[mode], { agent: visible(agent?.label ?? "–"), workspace: visible(workspace?.label ?? "–") });
  return (
    <form
      ref={run.form}
      className="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void run.submit();
      }}
    >
      {from && (
        <p className="muted">
          {t(mode === "goOn" ? "runs.create.continues" : "runs.create.from")}{" "}
          <Link to="/runs/$id" params={{ id: from.id }}>
            {from.title || from.id}
          </Link>
        </p>
      )}
      <TextField
        {...fields("task")}
        pageFocus
        label={t("runs.create.task")}
        help={t("runs.create.taskHelp")}
        placeholder={t("runs.create.taskPlaceholder")}
        rows={6}
      />
      <Places run={run} />
      {known && <Options draft={draft} agent={agent} fields={fields} change={run.change} />}
      {run.errors.map((error) => (
        <ErrorNote key={`${error.code} ${error.message}`} error={error} issues />
      ))}
      {known && (
        <div className="acts form__acts">
          {mode === "new" && draft.task !== "" && (
            <Button kind="ghost" onClick={() => run.change(EMPTY)}>
              {t("runs.create.discard")}
            </Button>
          )}
          <Button kind="ink" large type="submit" icon="running" pending={run.sending}>
            {label.text} <Kbd>Ctrl ↵</Kbd>
          </Button>
        </div>
      )}
    </form>
  );
}

/** By whom and where. */
function Places({ run }: { run: NewRunHandle }) {
  const { agent, workspace, agents, workspaces, fields } = run;
  return (
    <div className="form__pair">
      <SelectField
        label={t("runs.create.agent")}
        value={agent?.id ?? ""}
        options={(agents ?? []).map(({ id, label }) => ({ value: id, label: label === id ? id : `${label} (${id})` }))}
        onChange={fields("agent").onChange}
        problem={agents?.length === 0 ? t("runs.create.noAgent") : fields("agent").problem}
        help={agent && t("runs.create.agentHelp", { backend: agent.backendProfile, capabilities: agent.capabilities.join(", ") })}
      />
      <SelectField
        label={t("runs.create.workspace")}
        value={workspace?.id ?? ""}
        options={(workspaces ?? []).map(({ id, label }) => ({ value: id, label }))}
        onChange={fields("workspace").onChange}
        problem={fields("workspace").problem}
        help={workspace && t("runs.create.workspaceHelp", { edge: workspace.edgeId, project: workspace.project })}
      />
    </div>
  );
}
