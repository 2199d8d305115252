// A form from a JSON Schema. What was typed is kept as it was typed (a draft); `readForm` gives the value, or where it cannot be read.
//
//   const [draft, setDraft] = useState<Draft>();
//   <SchemaForm schema={schema} value={draft} onChange={setDraft} issues={issues} idPrefix="answer" />
//   const read = readForm(schema, draft);   // { ok: true, value } or { ok: false, issues }: show these as the runtime's own
import { useEffect, useMemo, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { visible } from "../visible";
import type { Draft, FormIssue } from "./draft";
import { Fields, NamedField } from "./fields";
import { placed } from "./place";
import { shapeOf } from "./shape";

export { draftOf, fits, readForm, type Draft, type FormIssue, type ReadForm } from "./draft";
export { exact, parseJson, same, type Json } from "./json";

/** What a form takes. */
export interface SchemaFormProps {
  /** The JSON Schema of the value, as it came. */
  schema: unknown;
  /** What was typed so far; nothing is an empty form. `draftOf(schema, value)` makes one of a value. */
  value: Draft;
  onChange: (draft: Draft) => void;
  /** What is wrong, each at its path. A new list moves the focus to the first of them. */
  issues?: readonly FormIssue[];
  /** Begins the ids of all fields, so that two forms can stand on a page. */
  idPrefix: string;
  /** The name of the only field, where the schema is not an object. */
  label?: string;
}

const NONE: readonly FormIssue[] = [];

/** The form of a schema. Nothing is validated here: what the runtime says is shown where it belongs. */
export function SchemaForm({ schema, value, onChange, issues = NONE, idPrefix, label }: SchemaFormProps) {
  useLanguage();
  const form = useRef<HTMLDivElement>(null);
  const shape = useMemo(() => shapeOf(schema), [schema]);
  const { at, rest } = useMemo(() => placed(shape, value, idPrefix, issues), [shape, value, idPrefix, issues]);
  useEffect(() => {
    if (issues.length && form.current) focusFirst(form.current);
  }, [issues]);
  return (
    <div className="sf" ref={form}>
      {rest.length > 0 && (
        <div className="note note--err sf__rest" role="alert" tabIndex={-1}>
          <ul>
            {rest.map((message, index) => (
              <li key={index} className="issue">
                {visible(message)}
              </li>
            ))}
          </ul>
        </div>
      )}
      {shape.kind === "group" ? (
        <Fields fields={shape.fields} draft={value} onChange={onChange} id={idPrefix} issues={at} />
      ) : (
        <NamedField
          shape={shape}
          draft={value}
          onChange={onChange}
          id={idPrefix}
          name={label ?? t("dev.form.input")}
          required={false}
          issues={at}
        />
      )}
    </div>
  );
}

/** The first thing that is wrong takes the focus: its control, or the first one in its frame. */
function focusFirst(form: HTMLElement): void {
  const first = form.querySelector<HTMLElement>("[data-issue-of], .sf__rest");
  if (!first) return;
  const place = first.dataset["issueOf"] ? document.getElementById(first.dataset["issueOf"]) : first;
  const isControl = place?.matches("input, textarea, select, .sf__rest");
  const inside = isControl ? place : place?.querySelector<HTMLElement>("input, textarea, select, button");
  (inside ?? place)?.focus();
}
