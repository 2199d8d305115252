// The form of a question: choices as radio buttons, everything else from its schema.
import { useId } from "react";
import { t, useLanguage } from "../../i18n";
import { SchemaForm, readForm, type Draft, type FormIssue } from "../../ui/schema-form";
import { visible } from "../../ui";
import { isFields } from "./request";
import type { Stage } from "./sending";

/** One value that a question offers. */
export interface Choice {
  value: unknown;
  label: string;
}

/** The values that a question offers to choose from; nothing where it offers none. */
export function choicesIn(schema: unknown): Choice[] | null {
  if (!isFields(schema)) return null;
  if (schema["type"] === "boolean") return [{ value: true, label: "true" }, { value: false, label: "false" }];
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value) => ({ value, label: asText(value) }));
  const options = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(options) || options.length === 0) return null;
  const choices: Choice[] = [];
  for (const option of options) {
    if (!isFields(option) || !("const" in option)) return null;
    const { const: value, title } = option;
    choices.push({ value, label: typeof title === "string" ? `${title} (${asText(value)})` : asText(value) });
  }
  return choices;
}

/** Whether an answer is typed into fields, and not chosen. */
export const hasFields = (schema: unknown): boolean => choicesIn(schema) === null;

/** What the hub found wrong with an answer, each at its place in the form. */
export function misfits(stage: Stage): readonly FormIssue[] {
  if (stage.kind !== "refused" || stage.says !== "approve") return [];
  return stage.refusal.issues
    .filter(({ path }) => path[0] === "answer")
    .map(({ path, message }) => ({ path: path.slice(1), message }));
}

/** A value as people read it. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** What was given so far: a choice, or what was typed into the form. */
export type Given = { kind: "nothing" } | { kind: "choice"; index: number } | { kind: "draft"; draft: Draft };

/** An answer, or what is wrong with it. */
export type Answer = { ok: true; value: unknown } | { ok: false; issues: readonly FormIssue[] };

/** The answer as it would be sent, or what is wrong with it. */
export function answerOf(schema: unknown, given: Given): Answer {
  const choices = choicesIn(schema);
  if (choices !== null) {
    const chosen = given.kind === "choice" ? choices[given.index] : undefined;
    return chosen === undefined ? { ok: false, issues: [] } : { ok: true, value: chosen.value };
  }
  const read = readForm(schema, given.kind === "draft" ? given.draft : undefined);
  if (!read.ok) return read;
  if (read.value === undefined || lacks(schema, read.value)) return { ok: false, issues: [] };
  return { ok: true, value: read.value };
}

/** Whether a value lacks what its schema requires, at any depth: such an answer is not one yet. */
function lacks(schema: unknown, value: unknown): boolean {
  if (!isFields(schema) || !isFields(value)) return false;
  const { required, properties } = schema;
  if (Array.isArray(required) && required.some((name) => !Object.hasOwn(value, String(name)))) return true;
  return isFields(properties) && Object.entries(value).some(([name, part]) => lacks(properties[name], part));
}

/** The form. */
export function QuestionForm({ id, schema, given, onChange, issues }: {
  id: string;
  schema: unknown;
  given: Given;
  onChange: (given: Given) => void;
  issues: readonly FormIssue[];
}) {
  useLanguage();
  const name = useId();
  const choices = choicesIn(schema);
  if (choices === null) {
    const draft = given.kind === "draft" ? given.draft : undefined;
    return (
      <SchemaForm
        schema={schema}
        value={draft}
        onChange={(next) => onChange({ kind: "draft", draft: next })}
        issues={issues}
        idPrefix={`answer-${id}`}
        label={t("approvals.answerLabel")}
      />
    );
  }
  return (
    <fieldset className="choices">
      <legend className="label">{t("approvals.answerLabel")}</legend>
      {choices.map((choice, index) => (
        <label key={index}>
          <input
            type="radio"
            name={name}
            checked={given.kind === "choice" && given.index === index}
            onChange={() => onChange({ kind: "choice", index })}
          />
          <span>{visible(choice.label)}</span>
        </label>
      ))}
    </fieldset>
  );
}
