// The workspaces: directories that people allow runs to work on. Adding and removing ask first.
import { useAction, useHub } from "@runyard/react";
import { useState, type FormEvent } from "react";
import { t, useLanguage } from "../../i18n";
import { announce, Block, Button, effect, Empty, exactName, TextField, visible } from "../../ui";
import type { useWorkspaces, Workspace } from "./data";
import { EffectDialog } from "./effect-dialog";
import { isRead, Read, Section } from "./section";

/** The list of workspaces, with what changes it. */
export function Workspaces({ workspaces }: { workspaces: ReturnType<typeof useWorkspaces> }) {
  useLanguage();
  const [removing, setRemoving] = useState<Workspace | null>(null);
  const { can } = useHub();
  const refusal = can("workspaces.write") ? undefined : t("system.needs", { permission: "workspaces.write" });
  return (
    <Section title={t("system.workspaces.title")} about={t("system.workspaces.about")}>
      <Read reading={workspaces}>
        {({ workspaces: found }) =>
          found.length === 0 ? (
            <Empty icon="folder" title={t("system.workspaces.none")} command="runyard workspaces add .">
              {t("system.workspaces.noneAbout")}
            </Empty>
          ) : (
            <table className="list">
              <thead>
                <tr>
                  <th scope="col">{t("system.workspaces.label")}</th>
                  <th scope="col">{t("system.workspaces.id")}</th>
                  <th scope="col">{t("system.workspaces.project")}</th>
                  <th scope="col">{t("system.workspaces.edge")}</th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {found.map((workspace) => (
                  <tr key={workspace.id}>
                    <th scope="row">{visible(workspace.label)}</th>
                    <td data-label={t("system.workspaces.id")}>
                      <code>{workspace.id}</code>
                    </td>
                    <td data-label={t("system.workspaces.project")}>{workspace.project}</td>
                    <td data-label={t("system.workspaces.edge")}>{workspace.edgeId}</td>
                    <td className="end">
                      <Button kind="reject" disabledReason={refusal} onClick={() => setRemoving(workspace)}>
                        {t("system.effect.removeWorkspaceAsk", { label: visible(workspace.label) })}
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Read>
      {isRead(workspaces) && <AddWorkspace refusal={refusal} onAdded={workspaces.refresh} />}
      {removing && <RemoveWorkspace workspace={removing} onClose={() => setRemoving(null)} onRemoved={workspaces.refresh} />}
    </Section>
  );
}

function AddWorkspace({ refusal, onAdded }: { refusal: string | undefined; onAdded: () => void }) {
  const [path, setPath] = useState("");
  const [label, setLabel] = useState("");
  const [asking, setAsking] = useState(false);
  const [problem, setProblem] = useState<string>();
  const add = useAction("workspace_add", { outlives: true });
  const issue = (field: string) => add.error?.issues.find((found) => found.path[0] === field)?.message;
  const ask = (event: FormEvent) => {
    event.preventDefault();
    if (refusal !== undefined) return;
    const given = path.trim();
    setProblem(given === "" ? t("system.workspaces.pathMissing") : given.startsWith("/") ? undefined : t("system.workspaces.pathRelative"));
    if (given.startsWith("/")) setAsking(true);
  };
  const run = async () => {
    const envelope = await add.invoke({ path: path.trim(), ...(label.trim() && { label: label.trim() }) });
    if (!envelope) return;
    // What is wrong with a field is shown at the field.
    if (envelope.ok || envelope.error.issues.length > 0) setAsking(false);
    if (!envelope.ok) return;
    announce(t("system.workspaces.added", { label: envelope.data.workspace.label }));
    setPath("");
    setLabel("");
    onAdded();
  };
  return (
    <form className="inline-form" onSubmit={ask} noValidate>
      <TextField
        label={t("system.workspaces.path")}
        value={path}
        onChange={setPath}
        mono
        autoComplete="off"
        placeholder="/home/ada/demo"
        problem={problem ?? issue("path")}
      />
      <TextField
        label={t("system.workspaces.newLabel")}
        value={label}
        onChange={setLabel}
        autoComplete="off"
        optional={t("system.optional")}
        problem={issue("label")}
      />
      <Button type="submit" icon="plus" large disabledReason={refusal}>
        {t("system.effect.addWorkspaceAsk")}
      </Button>
      {asking && (
        <EffectDialog
          title={t("system.workspaces.addTitle")}
          label={effect("system.effect.addWorkspace", { path: exactName(path.trim()) })}
          keep={t("system.workspaces.addNot")}
          pending={add.status === "running"}
          error={add.error && add.error.issues.length === 0 ? add.error : null}
          onEffect={() => void run()}
          onClose={() => setAsking(false)}
        >
          <p>{t("system.workspaces.addMeans")}</p>
          <Block wrap label={t("system.workspaces.path")}>
            {path.trim()}
          </Block>
          <p className="muted">{t("system.workspaces.addNotMeans")}</p>
        </EffectDialog>
      )}
    </form>
  );
}

function RemoveWorkspace({ workspace, onClose, onRemoved }: { workspace: Workspace; onClose: () => void; onRemoved: () => void }) {
  const remove = useAction("workspace_remove", { outlives: true });
  const run = async () => {
    const envelope = await remove.invoke({ id: workspace.id });
    if (!envelope?.ok) return;
    announce(t("system.workspaces.removed", { label: visible(workspace.label) }));
    onRemoved();
    onClose();
  };
  return (
    <EffectDialog
      title={t("system.workspaces.removeTitle", { label: visible(workspace.label) })}
      label={effect("system.effect.removeWorkspace", { label: visible(workspace.label) })}
      keep={t("system.workspaces.keep")}
      pending={remove.status === "running"}
      error={remove.error}
      onEffect={() => void run()}
      onClose={onClose}
    >
      <p>{t("system.workspaces.removeMeans")}</p>
      <p className="muted">{t("system.workspaces.removeNotMeans")}</p>
    </EffectDialog>
  );
}
