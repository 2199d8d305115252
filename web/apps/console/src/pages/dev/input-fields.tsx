// The input of an action: as a form or as JSON, an example to begin with, and the options of the call.
import type { ActionManifest } from "@runyard/react";
import { useEffect, useRef } from "react";
import { t } from "../../i18n";
import { Button, Segmented, TextField, visible } from "../../ui";
import { SchemaForm } from "../../ui/schema-form";
import type { DevInput, DevProblems } from "./input";

/** Everything that is given to a call. */
export function InputFields({ action, input, problems, idPrefix, onChange, onSwitch, onExample }: {
  action: ActionManifest;
  input: DevInput;
  problems: DevProblems;
  idPrefix: string;
  onChange: (input: DevInput) => void;
  onSwitch: (mode: DevInput["mode"]) => void;
  onExample: (value: unknown) => void;
}) {
  const example = action.examples[0];
  return (
    <>
      <div className="devform__head">
        <h2>{t("dev.input")}</h2>
        <span className="grow" />
        {example !== undefined && <Button kind="ghost" onClick={() => onExample(example)}>{t("dev.example")}</Button>}
        <Segmented
          label={t("dev.inputAs")}
          value={input.mode}
          options={[
            { value: "form", label: t("dev.asForm") },
            { value: "json", label: "JSON" },
          ]}
          onChange={onSwitch}
        />
      </div>
      <div className="devinput">
        {input.mode === "form" ? (
          <SchemaForm
            schema={action.inputSchema}
            value={input.draft}
            onChange={(draft) => onChange({ ...input, draft })}
            issues={problems.issues}
            idPrefix={idPrefix}
            label={t("dev.inputJson")}
          />
        ) : (
          <JsonInput
            value={input.json}
            onChange={(json) => onChange({ ...input, json })}
            problems={problems}
            id={`${idPrefix}-json`}
          />
        )}
      </div>
      <details className="devoptions">
        <summary>{t("dev.options")}</summary>
        <div className="pair">
          <TextField
            label={t("dev.timeout")}
            value={input.timeout}
            inputMode="numeric"
            autoComplete="off"
            onChange={(timeout) => onChange({ ...input, timeout })}
            problem={problems.timeout}
          />
          <TextField
            label={t("dev.key")}
            value={input.key}
            mono
            autoComplete="off"
            onChange={(key) => onChange({ ...input, key })}
            help={t("dev.keyHelp")}
          />
        </div>
      </details>
    </>
  );
}

function JsonInput({ value, onChange, problems, id }: {
  value: string;
  onChange: (value: string) => void;
  problems: DevProblems;
  id: string;
}) {
  const area = useRef<HTMLTextAreaElement>(null);
  const { issues } = problems;
  useEffect(() => {
    if (issues.length) area.current?.focus();
  }, [issues]);
  return (
    <div className="formfield">
      <label htmlFor={id}>{t("dev.inputJson")}</label>
      <textarea
        ref={area}
        id={id}
        className="input mono devinput__json"
        rows={12}
        spellCheck={false}
        value={value}
        aria-invalid={issues.length > 0 || undefined}
        aria-describedby={issues.length > 0 ? `${id}-issue` : undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {issues.length > 0 && (
        <div id={`${id}-issue`} role="alert">
          {issues.map((issue, index) => (
            <p key={index} className="formfield__problem issue">
              {issue.path.length > 0 && <code>{issue.path.join(".")}</code>} {visible(issue.message)}
            </p>
          ))}
        </div>
      )}
    </div>
  );
}
