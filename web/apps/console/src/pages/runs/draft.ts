// What somebody typed for a new run. It outlives a reload and a login, not the tab.

import type { actions } from "@runyard/react";

/** Everything the form holds, as typed. Empty means: as the agent profile has it. */
export interface Draft {
  task: string;
  agent: string;
  workspace: string;
  sandbox: "" | NonNullable<Policy["sandbox"]>;
  network: "" | NonNullable<Policy["network"]>;
  approval: "" | NonNullable<Policy["approval"]>;
  changes: "" | NonNullable<Policy["changes"]>;
  costUsd: string;
  tokens: string;
  timeout: string;
  keepOpen: string;
}

/** Nothing typed. */
export const EMPTY: Draft = {
  task: "",
  agent: "",
  workspace: "",
  sandbox: "",
  network: "",
  approval: "",
  changes: "",
  costUsd: "",
  tokens: "",
  timeout: "",
  keepOpen: "",
};

/** The fields below the options. */
const OPTIONS: readonly (keyof Draft)[] = ["sandbox", "network", "approval", "changes", "costUsd", "tokens", "timeout", "keepOpen"];

const STORED = "runyard.draft";

/** The kept draft. */
export function loadDraft(): Draft {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(STORED) ?? "null");
    return typeof stored === "object" && stored !== null ? { ...EMPTY, ...stored } : EMPTY;
  } catch {
    return EMPTY;
  }
}

/** Keeps the draft, or forgets it where nothing is typed. */
export function keepDraft(draft: Draft | null): void {
  try {
    if (draft === null) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify(draft));
  } catch {
    // Without storage the form still works; only a reload loses it.
  }
}

/** What a run may do. */
export type Policy = actions.ExecutionPolicyInput;

/** The policy of an agent profile, as far as it is one. */
export function policyIn(given: unknown): Policy {
  return typeof given === "object" && given !== null ? given : {};
}

const MINUTE_MS = 60_000;
const WHOLE = /^[1-9][0-9]{0,9}$/;
const MONEY = /^[0-9]{1,13}(\.[0-9]{1,6})?$/;

/** What is wrong with what was typed, by field: the key's last part below `runs.create.bad`. */
export type Problems = Partial<Record<keyof Draft, "task" | "number" | "money" | "choose">>;

/** Looks at the draft before it is sent. */
export function problemsOf(draft: Draft): Problems {
  const problems: Problems = {};
  if (draft.task.trim() === "") problems.task = "task";
  if (draft.agent === "") problems.agent = "choose";
  if (draft.workspace === "") problems.workspace = "choose";
  for (const field of ["tokens", "timeout", "keepOpen"] as const) {
    if (draft[field] !== "" && !WHOLE.test(draft[field].trim())) problems[field] = "number";
  }
  if (draft.costUsd !== "" && !MONEY.test(draft.costUsd.trim())) problems.costUsd = "money";
  return problems;
}

/** Whether any option differs from the agent profile's own. */
export function changedOptions(draft: Draft): number {
  return OPTIONS.filter((field) => draft[field] !== "").length;
}

/** The policy to send: what was changed; the rest is the agent profile's. */
export function policyOf(draft: Draft): Policy | undefined {
  if (changedOptions(draft) === 0) return undefined;
  const limits = {
    ...(draft.costUsd !== "" && { costUsd: draft.costUsd.trim() }),
    ...(draft.tokens !== "" && { tokens: Number(draft.tokens) }),
  };
  return {
    ...(draft.sandbox !== "" && { sandbox: draft.sandbox }),
    ...(draft.network !== "" && { network: draft.network }),
    ...(draft.approval !== "" && { approval: draft.approval }),
    ...(draft.changes !== "" && { changes: draft.changes }),
    ...(Object.keys(limits).length > 0 && { budget: limits }),
    ...(draft.timeout !== "" && { timeoutMs: Number(draft.timeout) * MINUTE_MS }),
    ...(draft.keepOpen !== "" && { keepOpenMs: Number(draft.keepOpen) * MINUTE_MS }),
  };
}

const PLACES: Record<string, keyof Draft> = {
  task: "task",
  agent: "agent",
  workspace: "workspace",
  "executionPolicy.sandbox": "sandbox",
  "executionPolicy.network": "network",
  "executionPolicy.approval": "approval",
  "executionPolicy.changes": "changes",
  "executionPolicy.budget.costUsd": "costUsd",
  "executionPolicy.budget.tokens": "tokens",
  "executionPolicy.timeoutMs": "timeout",
  "executionPolicy.keepOpenMs": "keepOpen",
};

/** The field that an issue of the hub is about, or nothing where no field is. */
export function fieldOf(path: readonly (string | number)[]): keyof Draft | undefined {
  const text = path.join(".");
  return PLACES[text] ?? (path[0] === "task" ? "task" : undefined);
}

const LAST_AGENT = "runyard.lastAgent";

/** The agent that was chosen for the last run in this browser. */
export function lastAgent(): string | null {
  try {
    return localStorage.getItem(LAST_AGENT);
  } catch {
    return null;
  }
}

/** Remembers it. */
export function keepLastAgent(id: string): void {
  try {
    localStorage.setItem(LAST_AGENT, id);
  } catch {
    // It is then chosen again.
  }
}
