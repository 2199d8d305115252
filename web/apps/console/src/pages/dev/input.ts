// What is given to an action: a form or JSON, with the options of the call. Nothing that was typed is thrown away by switching.
import type { ActionManifest } from "@runyard/react";
import { t } from "../../i18n";
import { draftOf, exact, fits, parseJson, readForm, type Draft, type FormIssue, type Json } from "../../ui/schema-form";
import type { DevCall } from "./copy-as";

/** What was typed, in the form that it was typed in. It is plain JSON, so it can be kept. */
export interface DevInput {
  mode: "form" | "json";
  draft: Draft;
  json: string;
  timeout: string;
  key: string;
}

/** What is wrong: at fields of the form, with the JSON as a whole, or with the timeout. */
export interface DevProblems {
  issues: readonly FormIssue[];
  timeout?: string;
}

/** Nothing typed yet. */
export const EMPTY: DevInput = { mode: "form", draft: undefined, json: "{}", timeout: "", key: "" };

/** What was typed as it is sent, or what cannot be read. */
export type ReadCall = { ok: true; call: DevCall } | { ok: false; problems: DevProblems };

/** The value of the input alone. */
export function readInput(action: ActionManifest, input: DevInput): { ok: true; value: Json } | { ok: false; issues: FormIssue[] } {
  if (input.mode === "json") {
    const parsed = parseJson(input.json.trim() === "" ? "{}" : input.json);
    return parsed.ok ? parsed : { ok: false, issues: [{ path: [], message: parsed.message }] };
  }
  const read = readForm(action.inputSchema, input.draft);
  return read.ok ? { ok: true, value: read.value ?? {} } : read;
}

/** The call as it is sent. */
export function readCall(action: ActionManifest, input: DevInput): ReadCall {
  const read = readInput(action, input);
  const timeout = input.timeout.trim();
  const isTime = timeout === "" || (/^\d+$/.test(timeout) && exact(timeout));
  if (!read.ok || !isTime) {
    const problems: DevProblems = { issues: read.ok ? [] : read.issues, ...(!isTime && { timeout: t("dev.timeoutWrong") }) };
    return { ok: false, problems };
  }
  const call: DevCall = {
    input: read.value,
    ...(action.requiresConfirmation && { confirm: true }),
    ...(input.key !== "" && { idempotencyKey: input.key }),
    ...(timeout !== "" && { timeoutMs: Number(timeout) }),
  };
  return { ok: true, call };
}

/** The same input the other way; a form that could not show all of it stays JSON and says so. */
export function switched(action: ActionManifest, input: DevInput, mode: DevInput["mode"]): { input: DevInput; issues: FormIssue[] } {
  if (mode === input.mode) return { input, issues: [] };
  const read = readInput(action, input);
  if (!read.ok) return { input, issues: read.issues };
  if (mode === "json") return { input: { ...input, mode, json: JSON.stringify(read.value, null, 2) }, issues: [] };
  if (!fits(action.inputSchema, read.value)) return { input, issues: [{ path: [], message: t("dev.formCannot") }] };
  return { input: { ...input, mode, draft: draftOf(action.inputSchema, read.value) }, issues: [] };
}

/** An input that says this value: as a form where one can show all of it. */
export function inputOf(action: ActionManifest, value: unknown, before: DevInput = EMPTY): DevInput {
  const json = JSON.stringify(value, null, 2) ?? "{}";
  return { ...before, mode: fits(action.inputSchema, value) ? "form" : "json", draft: draftOf(action.inputSchema, value), json };
}
