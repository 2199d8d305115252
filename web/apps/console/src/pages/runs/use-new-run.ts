// What the form of a new run does: keeps what is typed, looks at it, and starts one run of it.
import { useRouter } from "@tanstack/react-router";
import { useAction, useData, type actions, type Failing } from "@runyard/react";
import { useMemo, useRef, useState, type RefObject } from "react";
import { t } from "../../i18n";
import { fieldOf, keepDraft, keepLastAgent, lastAgent, policyOf, problemsOf, type Draft, type Problems } from "./draft";

/** A run of its own, the same once more, or one that goes on from another. */
export type Mode = "new" | "again" | "goOn";
/** The run that it starts from. */
export interface Origin {
  id: string;
  title: string;
}

/** What a field shows: what was typed, what is wrong with it, and what to do when it changes. */
export interface FieldHandle {
  value: string;
  problem: string | undefined;
  onChange: (value: string) => void;
}

/** The form, without how it looks. */
export interface NewRunHandle {
  draft: Draft;
  agents: actions.AgentView[] | undefined;
  workspaces: actions.WorkspaceEntry[] | undefined;
  agent: actions.AgentView | undefined;
  workspace: actions.WorkspaceEntry | undefined;
  form: RefObject<HTMLFormElement | null>;
  sending: boolean;
  /** What has no field to stand at. */
  errors: readonly Failing[];
  change: (part: Partial<Draft>) => void;
  fields: (field: keyof Draft) => FieldHandle;
  submit: () => Promise<void>;
}

/** The form's state and what it does. */
export function useNewRun(mode: Mode, from: Origin | undefined, start: Draft): NewRunHandle {
  const [draft, setDraft] = useState(start);
  const [shown, setShown] = useState<Problems>({});
  const form = useRef<HTMLFormElement>(null);
  const create = useAction("run_create", { outlives: true });
  const router = useRouter();
  const lists = useLists(draft);
  const key = useIdempotencyKey(draft);
  const { agent, workspace } = lists;

  function change(part: Partial<Draft>): void {
    const next = { ...draft, ...part };
    setDraft(next);
    setShown({});
    if (create.status === "error") create.dismiss();
    if (mode === "new") keepDraft(next);
  }

  async function submit(): Promise<void> {
    if (create.status === "running") return;
    const found = problemsOf({ ...draft, agent: agent?.id ?? "", workspace: workspace?.id ?? "" });
    setShown(found);
    if (Object.keys(found).length > 0 || !agent || !workspace) {
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
      return;
    }
    const policy = policyOf(draft);
    const origin = mode === "goOn" && from ? { continues: from.id } : {};
    const input = { task: draft.task, agent: agent.id, workspace: workspace.id, ...(policy && { executionPolicy: policy }), ...origin };
    const answer = await create.invoke(input, { idempotencyKey: key });
    if (!answer?.ok) return;
    keepLastAgent(agent.id);
    if (mode === "new") keepDraft(null);
    await router.navigate({ to: "/runs/$id", params: { id: answer.data.run.id } });
  }

  /** Joins a field with what is wrong with it: found here, or said by the hub. */
  function fields(field: keyof Draft): FieldHandle {
    const own = shown[field];
    const said = create.error?.issues.find(({ path }) => fieldOf(path) === field)?.message;
    return {
      value: draft[field],
      problem: own ? t(`runs.create.bad.${own}`) : said,
      onChange: (value) => change({ [field]: value }),
    };
  }

  const placed = create.error !== null && create.error.issues.length > 0 && create.error.issues.every(({ path }) => fieldOf(path));
  const errors = [placed ? null : create.error, ...lists.errors].filter((error) => error !== null);
  return { draft, ...lists, form, sending: create.status === "running", errors, change, fields, submit };
}

/** What can be chosen, and what is: the first where nothing was chosen yet. */
function useLists(draft: Draft) {
  const agentList = useData("agent_list", {});
  const workspaceList = useData("workspace_list", {});
  // A run of a single action is not started with a text.
  const agents = agentList.data?.agents.filter(({ backendProfile }) => backendProfile !== "action");
  const workspaces = workspaceList.data?.workspaces;
  const agent = draft.agent === "" ? usual(agents) : agents?.find(({ id }) => id === draft.agent);
  const named = workspaces?.find(({ id, label }) => id === draft.workspace || label === draft.workspace);
  const workspace = draft.workspace === "" ? workspaces?.[0] : named;
  return { agents, workspaces, agent, workspace, errors: [agentList.error, workspaceList.error] };
}

/** What the command line takes, too: it needs no key. */
const DEMO = "demo";

/** The agent that was chosen the last time, or one that can do its work anywhere. */
function usual(agents: readonly actions.AgentView[] | undefined): actions.AgentView | undefined {
  const known = (wanted: string | null) => agents?.find(({ id }) => id === wanted);
  return known(lastAgent()) ?? known(DEMO) ?? agents?.[0];
}

/** One key for one content: pressing twice starts one run, and a changed task is another run. */
function useIdempotencyKey(draft: Draft): string {
  const content = JSON.stringify(draft);
  return useMemo(() => (content === "" ? "" : crypto.randomUUID()), [content]);
}
