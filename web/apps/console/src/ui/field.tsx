// Fields of forms: a label, the control, what it is for, and what is wrong with it.
import { useId, type KeyboardEvent, type ReactNode, type Ref } from "react";
import { Icon } from "./icon";

/** What joins a control to its label, its help and its problem. */
export interface FieldIds {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

/** A labelled control. */
export function Field({ label, help, problem, optional, children }: {
  label: ReactNode;
  help?: ReactNode;
  problem?: string | undefined;
  optional?: string;
  children: (ids: FieldIds) => ReactNode;
}) {
  const id = useId();
  const described = [help ? `${id}-help` : "", problem ? `${id}-problem` : ""].filter(Boolean).join(" ");
  return (
    <div className="formfield">
      <label htmlFor={id}>
        {label} {optional && <span className="muted">{optional}</span>}
      </label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": problem ? true : undefined })}
      {help && (
        <p id={`${id}-help`} className="formfield__help">
          {help}
        </p>
      )}
      {problem && (
        <p id={`${id}-problem`} className="formfield__problem">
          <Icon name="failed" small />
          {problem}
        </p>
      )}
    </div>
  );
}

/** What a text field takes. */
export interface TextFieldProps {
  label: ReactNode;
  value: string;
  onChange: (value: string) => void;
  help?: ReactNode;
  problem?: string | undefined;
  optional?: string;
  placeholder?: string;
  /** Several lines. */
  rows?: number;
  mono?: boolean;
  inputMode?: "text" | "numeric" | "decimal" | "search";
  autoComplete?: string;
  ref?: Ref<HTMLInputElement | HTMLTextAreaElement>;
  onKeyDown?: (event: KeyboardEvent) => void;
  /** Takes the focus when somebody comes to the page, in place of its heading. */
  pageFocus?: boolean;
}

/** A labelled text field of one line or several. */
export function TextField({ label, value, onChange, help, problem, optional, rows, mono = false, ref, pageFocus, ...rest }: TextFieldProps) {
  const shared = { "data-page-focus": pageFocus || undefined, value, className: `input${mono ? " mono" : ""}`, spellCheck: !mono };
  return (
    <Field label={label} {...(help !== undefined && { help })} problem={problem} {...(optional !== undefined && { optional })}>
      {(ids) =>
        rows === undefined ? (
          <input {...ids} {...rest} {...shared} ref={ref as Ref<HTMLInputElement>} onChange={(event) => onChange(event.target.value)} />
        ) : (
          <textarea
            {...ids}
            {...rest}
            {...shared}
            ref={ref as Ref<HTMLTextAreaElement>}
            rows={rows}
            onChange={(event) => onChange(event.target.value)}
          />
        )
      }
    </Field>
  );
}

/** One of several values. */
export interface Option<T extends string> {
  value: T;
  label: ReactNode;
  /** Said instead of the label by those who do not see it. */
  name?: string;
}

/** A labelled native list to choose one of. */
export function SelectField<T extends string>({ label, value, options, onChange, help, problem }: {
  label: ReactNode;
  value: T;
  options: readonly (Option<T> & { label: string })[];
  onChange: (value: T) => void;
  help?: ReactNode;
  problem?: string | undefined;
}) {
  return (
    <Field label={label} {...(help !== undefined && { help })} problem={problem}>
      {(ids) => (
        <span className="select">
          <select
            {...ids}
            className="input"
            value={value}
            onChange={(event) => {
              const chosen = options.find((option) => option.value === event.target.value);
              if (chosen) onChange(chosen.value);
            }}
          >
            {options.map((option) => (
              <option key={option.value} value={option.value}>
                {option.label}
              </option>
            ))}
          </select>
          <Icon name="down" small />
        </span>
      )}
    </Field>
  );
}

/** A few values side by side, one of them chosen. */
export function Segmented<T extends string>({ label, value, options, onChange, className = "" }: {
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
  className?: string;
}) {
  return (
    <div className={`seg ${className}`} role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          aria-label={option.name}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}

/** A tick, or a dash where some of what it stands for is ticked. */
export function Checkbox({ checked, onChange, label, hideLabel = false, disabledReason }: {
  checked: boolean | "mixed";
  onChange: (checked: boolean) => void;
  label: ReactNode;
  hideLabel?: boolean;
  disabledReason?: string;
}) {
  return (
    <label className="check" title={disabledReason}>
      <input
        type="checkbox"
        className="sr"
        checked={checked === true}
        aria-disabled={disabledReason !== undefined || undefined}
        aria-description={disabledReason}
        ref={(box) => {
          if (box) box.indeterminate = checked === "mixed";
        }}
        onChange={(event) => disabledReason === undefined && onChange(event.target.checked)}
      />
      <span className={`box${checked === true ? " on" : checked === "mixed" ? " mix" : ""}`} aria-hidden="true">
        {checked === true && <Icon name="check" />}
        {checked === "mixed" && <Icon name="minus" />}
      </span>
      <span className={hideLabel ? "sr" : ""}>{label}</span>
    </label>
  );
}
