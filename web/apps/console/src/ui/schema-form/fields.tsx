// The fields of a form, one component per shape. All words of a schema are shown with nothing hidden in them.
import { useId, type ReactNode } from "react";
import { flushSync } from "react-dom";
import { t } from "../../i18n";
import { Button } from "../button";
import { Checkbox } from "../field";
import { Icon } from "../icon";
import { visible } from "../visible";
import { fieldOf, isNullDraft, isText, rowsOf, typed, unionOf, withField, withRow, type Draft } from "./draft";
import { fieldId, rowId } from "./place";
import { words, type Hint, type NamedShape, type Shape } from "./shape";

interface FieldProps<S extends Shape = Shape> {
  shape: S;
  draft: Draft;
  onChange: (draft: Draft) => void;
  /** Of the control, or of the frame around several. */
  id: string;
  name: string;
  required: boolean;
  issues: ReadonlyMap<string, string[]>;
}

type Of<K extends Shape["kind"]> = Extract<Shape, { kind: K }>;

/** Whether a label belongs to one control, and not to a frame around several. */
const isControl = (shape: Shape): boolean => shape.kind !== "list" && shape.kind !== "group";

/** A field with its name, what it is for and what is wrong with it. */
export function NamedField(props: FieldProps) {
  const { shape, draft, id, name, required, issues, onChange } = props;
  if (shape.kind === "fixed") return null;
  const offersNull = isNullDraft(draft) || (shape.nullable && required);
  const title = visible(name);
  return (
    <div className="formfield sf__field" data-field={name}>
      <div className="sf__title">
        {isControl(shape) ? <label htmlFor={id}>{title}</label> : <span className="sf__label" id={`${id}-label`}>{title}</span>}
        {required && <span className="sf__required">{t("dev.form.required")}</span>}
        {offersNull && (
          <Checkbox
            checked={isNullDraft(draft)}
            onChange={(on) => onChange(on ? { isNull: true } : undefined)}
            label={t("dev.form.null")}
          />
        )}
      </div>
      {shape.about && (
        <p id={`${id}-about`} className="formfield__help">
          {visible(shape.about)}
        </p>
      )}
      {!isNullDraft(draft) && <AnyField {...props} />}
      <Problems id={id} issues={issues} />
    </div>
  );
}

function Problems({ id, issues }: { id: string; issues: ReadonlyMap<string, string[]> }) {
  const found = issues.get(id);
  if (!found) return null;
  return (
    <div id={`${id}-issue`} className="sf__issues" data-issue-of={id}>
      {found.map((message, index) => (
        <p key={index} className="formfield__problem issue">
          <Icon name="failed" small />
          {visible(message)}
        </p>
      ))}
    </div>
  );
}

/** The control of a shape, without its name. */
export function AnyField(props: FieldProps): ReactNode {
  const { shape } = props;
  switch (shape.kind) {
    case "text":
      return <TextControl {...props} shape={shape} />;
    case "number":
      return <input {...control(props)} inputMode="decimal" placeholder={hintText(shape.hint)} />;
    case "choice":
      return <ChoiceControl {...props} shape={shape} />;
    case "json":
      return <textarea {...control(props)} className="input mono" rows={4} spellCheck={false} placeholder="JSON" />;
    case "textOrJson":
      return <TextOrJsonControl {...props} shape={shape} />;
    case "list":
      return <ListField {...props} shape={shape} />;
    case "group":
      return <GroupField {...props} shape={shape} />;
    case "union":
      return <UnionField {...props} shape={shape} />;
    case "fixed":
      return null;
  }
}

function hintText(hint: Hint): string {
  return hint ? visible(t(`dev.form.${hint.word}`, { value: hint.value })) : "";
}

/** What every control of one value has. */
function control({ shape, draft, onChange, id, required, issues }: FieldProps) {
  const wrong = issues.has(id);
  const described = [shape.about ? `${id}-about` : "", wrong ? `${id}-issue` : ""].filter(Boolean).join(" ");
  return {
    id,
    className: "input",
    value: typed(draft),
    autoComplete: "off",
    "aria-required": required || undefined,
    "aria-invalid": wrong || undefined,
    "aria-describedby": described || undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
}

function TextControl(props: FieldProps<Of<"text">>) {
  const placeholder = hintText(props.shape.hint);
  if (props.shape.long) return <textarea {...control(props)} rows={3} placeholder={placeholder} />;
  return <input {...control(props)} placeholder={placeholder} />;
}

function ChoiceControl(props: FieldProps<Of<"choice">>) {
  return (
    <span className="select">
      <select {...control(props)}>
        <option value="">{hintText(props.shape.hint) || t("dev.form.notSet")}</option>
        {props.shape.choices.map(({ value, about }, index) => (
          <option key={index} value={String(index)}>
            {visible(about ? `${words(value)}: ${about}` : words(value))}
          </option>
        ))}
      </select>
      <Icon name="down" small />
    </span>
  );
}

/** Text, unless it is JSON of another type that fits; it says which of the two it takes it for. */
function TextOrJsonControl(props: FieldProps<Of<"textOrJson">>) {
  const text = typed(props.draft);
  const taken = text === "" ? "" : t(isText(text, props.shape.types) ? "dev.form.asText" : "dev.form.asJson");
  return (
    <>
      <textarea {...control(props)} rows={3} spellCheck={false} placeholder={t("dev.form.textOrJson")} />
      <p className="formfield__help kind" role="status">
        {taken}
      </p>
    </>
  );
}

/** Moves the focus into a field that has just appeared. */
function focusInto(id: string): void {
  const found = document.getElementById(id);
  const inside = found?.matches("input, textarea, select") ? found : found?.querySelector<HTMLElement>("input, textarea, select, button");
  inside?.focus();
}

function ListField({ shape, draft, onChange, id, name, issues }: FieldProps<Of<"list">>) {
  const rows = rowsOf(draft);
  const add = useId();
  const title = visible(name);
  const append = () => {
    const next = withRow(draft);
    flushSync(() => onChange(next));
    focusInto(rowId(id, next.rows.at(-1)?.id ?? 0));
  };
  const remove = (row: number) => {
    flushSync(() => onChange(rows.length > 1 ? { rows: rows.filter((other) => other.id !== row) } : undefined));
    document.getElementById(add)?.focus();
  };
  return (
    <div className="sf__list" id={id} role="group" aria-labelledby={`${id}-label`}>
      {rows.map((row, index) => (
        <div className="sf__row" key={row.id}>
          <RowField
            shape={shape.item}
            draft={row.draft}
            onChange={(next) => onChange({ rows: rows.map((other) => (other.id === row.id ? { ...other, draft: next } : other)) })}
            id={rowId(id, row.id)}
            name={`${name} ${index + 1}`}
            required={false}
            issues={issues}
          />
          <Button
            kind="ghost"
            icon="x"
            label={t("dev.form.remove", { name: `${title} ${index + 1}` })}
            onClick={() => remove(row.id)}
          />
        </div>
      ))}
      <button type="button" id={add} className="btn" aria-label={t("dev.form.addTo", { name: title })} onClick={append}>
        <Icon name="plus" />
        {t("dev.form.add")}
      </button>
    </div>
  );
}

/** One row: its name is only said, since the list's stands above. */
function RowField(props: FieldProps) {
  const title = visible(props.name);
  const label = isControl(props.shape) ? (
    <label className="sr" htmlFor={props.id}>
      {title}
    </label>
  ) : (
    <span className="sr" id={`${props.id}-label`}>
      {title}
    </span>
  );
  return (
    <div className="sf__cell">
      {label}
      <AnyField {...props} />
      <Problems id={props.id} issues={props.issues} />
    </div>
  );
}

function GroupField({ shape, draft, onChange, id, issues }: FieldProps<Of<"group">>) {
  return (
    <div className="sf__group" id={id} role="group" aria-labelledby={`${id}-label`}>
      <Fields fields={shape.fields} draft={draft} onChange={onChange} id={id} issues={issues} />
    </div>
  );
}

/** The fields of a group, without a frame. */
export function Fields({ fields, draft, onChange, id, issues }: {
  fields: NamedShape[];
  draft: Draft;
  onChange: (draft: Draft) => void;
  id: string;
  issues: ReadonlyMap<string, string[]>;
}) {
  if (fields.length === 0) return <p className="muted">{t("dev.form.noInput")}</p>;
  return fields.map(({ name, shape, required }, index) => (
    <NamedField
      key={name}
      shape={shape}
      draft={fieldOf(draft, index)}
      onChange={(next) => onChange(withField(fields, draft, index, next))}
      id={fieldId(id, index)}
      name={name}
      required={required}
      issues={issues}
    />
  ));
}

/** Which form a value has, and that form. What was typed into another one stays there. */
function UnionField(props: FieldProps<Of<"union">>) {
  const { shape, draft, onChange, id, name, issues } = props;
  const { option, drafts } = unionOf(draft);
  const chosen = shape.options[option];
  const choose = (next: number) => onChange({ option: next, drafts: shape.options.map((_, index) => drafts[index]) });
  return (
    <>
      <span className="select">
        <select
          {...control(props)}
          value={option < 0 ? "" : String(option)}
          onChange={(event) => choose(event.target.value === "" ? -1 : Number(event.target.value))}
        >
          <option value="">{t("dev.form.notSet")}</option>
          {shape.options.map(({ label, about }, index) => {
            const title = label ?? t("dev.form.option", { number: index + 1 });
            return (
              <option key={index} value={String(index)}>
                {visible(about ? `${title}: ${about}` : title)}
              </option>
            );
          })}
        </select>
        <Icon name="down" small />
      </span>
      {chosen?.shape.kind === "group" && chosen.shape.fields.some((field) => field.shape.kind !== "fixed") && (
        <div
          className="sf__group"
          role="group"
          aria-label={visible(`${name}: ${chosen.label ?? t("dev.form.option", { number: option + 1 })}`)}
        >
          <Fields
            fields={chosen.shape.fields}
            draft={drafts[option]}
            onChange={(next) => onChange({ option, drafts: shape.options.map((_, index) => (index === option ? next : drafts[index])) })}
            id={id}
            issues={issues}
          />
        </div>
      )}
    </>
  );
}
