// What the agent says, thinks and means to do.
import type { PlanStep } from "@runyard/react";
import { t } from "../../../../i18n";
import { Icon } from "../../../../ui";
import { Markdown } from "../../../../ui/markdown";
import { firstLine } from "../../words";
import { FoldLine } from "./fold";
import type { ContentProps } from "./index";

const SHOWN_CHARS_MAX = 1_400;
const SHOWN_LINES_MAX = 16;

/** The beginning of a long text, cut at a line; the text itself where it is short. */
export function clipped(text: string): string {
  const lines = text.split("\n", SHOWN_LINES_MAX + 1);
  const short = lines.length > SHOWN_LINES_MAX ? lines.slice(0, SHOWN_LINES_MAX).join("\n") : text;
  if (short.length <= SHOWN_CHARS_MAX) return short;
  const cut = short.lastIndexOf("\n", SHOWN_CHARS_MAX);
  return short.slice(0, cut > SHOWN_CHARS_MAX / 2 ? cut : SHOWN_CHARS_MAX);
}

/** A message: prose, clamped where it is long. */
export function MessageRow({ row, open, onToggle }: ContentProps<"message">) {
  return (
    <>
      {row.text !== "" && <Prose text={row.text} open={open} onToggle={() => onToggle(row.key)} />}
      {row.brokeOff !== undefined && <p className="muted">{row.brokeOff}</p>}
    </>
  );
}

/** A text in the timeline, with a way to all of it. */
export function Prose({ text, open, onToggle }: { text: string; open: boolean; onToggle: () => void }) {
  const start = clipped(text);
  const long = start.length < text.length;
  return (
    <div>
      <Markdown className="prose" text={open ? text : long ? `${start} …` : text} />
      {long && (
        <button type="button" className="linkish" aria-expanded={open} onClick={onToggle}>
          {open ? t("run.showLess") : t("run.showAll", { count: text.length - start.length })}
        </button>
      )}
    </div>
  );
}

/** What the agent tells of its thinking: folded, for it is no answer. */
export function ReasoningRow({ row, open, onToggle }: ContentProps<"reasoning">) {
  return (
    <div>
      <FoldLine open={open} onToggle={() => onToggle(row.key)}>
        <span className="kind">{t("run.row.reasoning")}</span>
        <span className="trunc">{firstLine(row.text.replaceAll("**", ""))}</span>
      </FoldLine>
      {open && <Markdown className="prose" text={row.text} />}
    </div>
  );
}

const PLAN_STEPS_MAX = 40;

/** The agent's plan, as it stood then. */
export function PlanRow({ row, open, onToggle }: ContentProps<"plan">) {
  const done = row.steps.filter((step) => step.status === "completed").length;
  const current = row.steps.find((step) => step.status === "in_progress");
  return (
    <div>
      <FoldLine open={open} onToggle={() => onToggle(row.key)}>
        <span className="kind">{t("run.row.plan")}</span>
        <span className="num">{t("run.planDone", { done, count: row.steps.length })}</span>
        {current !== undefined && <span className="trunc muted">{current.text}</span>}
      </FoldLine>
      {open && <Plan steps={row.steps.slice(0, PLAN_STEPS_MAX)} />}
    </div>
  );
}

/** The steps of a plan. */
export function Plan({ steps }: { steps: readonly PlanStep[] }) {
  return (
    <ul className="plan">
      {steps.map((step, index) => (
        <li key={index} className={`plan--${step.status}`}>
          <Icon name={step.status === "completed" ? "check" : step.status === "in_progress" ? "running" : "created"} small />
          <span>
            {step.text}
            <span className="sr"> ({t(`run.planStatus.${step.status}`)})</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
