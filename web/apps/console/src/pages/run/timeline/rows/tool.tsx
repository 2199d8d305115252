// A tool call: one line with its outcome, which opens to what it wrote.
import type { Row } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { t } from "../../../../i18n";
import { bytesText, Elapsed, Icon, visible, type IconName } from "../../../../ui";
import { callText, outcomeText, toolText } from "../../words";
import { outputText } from "../output-text";
import { FoldLine } from "./fold";
import type { ContentProps } from "./index";

type Tool = Extract<Row, { kind: "tool" }>;
const OUTPUT_CHARS_MAX = 6_000;

/** A tool call. */
export function ToolRow({ runId, row, open, onToggle }: ContentProps<"tool">) {
  return (
    <div>
      <FoldLine open={open} onToggle={() => onToggle(row.key)}>
        <span className="kind">{toolText(row.call.tool)}</span>
        <code className="trunc soft grow">{visible(callText(row.call))}</code>
        <Outcome row={row} />
      </FoldLine>
      {row.result?.outcome === "denied" && <p className="note">{row.result.summary}</p>}
      {open && <Output runId={runId} row={row} />}
    </div>
  );
}

const OUTCOMES: Record<string, { look: string; icon: IconName }> = {
  succeeded: { look: "ok", icon: "check" },
  failed: { look: "bad", icon: "x" },
  denied: { look: "bad", icon: "lock" },
  cancelled: { look: "muted", icon: "cancelled" },
};

/** How a call went, or how long it runs already. */
export function Outcome({ row }: { row: Tool }) {
  if (row.result === null) {
    return (
      <span className="muted num">
        {t("run.runningFor")} <Elapsed since={row.at} />
      </span>
    );
  }
  const shown = OUTCOMES[row.result.outcome] ?? { look: "muted", icon: "question" };
  const words =
    row.result.outcome === "denied" || row.result.outcome === "cancelled"
      ? t(`run.outcome.${row.result.outcome}`)
      : outcomeText(row.result.summary);
  return (
    <span className={shown.look}>
      <Icon name={shown.icon} />
      <span className="sr">{t(`run.outcome.${row.result.outcome}`)} </span>
      {words}
    </span>
  );
}

/** The command of a shell call as it was run; nothing for other tools. */
export function commandOf(row: Tool): string | undefined {
  const given = row.call.arguments;
  if (row.call.tool !== "shell") return undefined;
  const command = typeof given === "object" && given !== null && "command" in given ? given.command : undefined;
  return typeof command === "string" ? command : row.call.summary;
}

/** What a call wrote, bounded: begin and end, and a link to all of it. */
export function Output({
  runId,
  row,
  charsMax = OUTPUT_CHARS_MAX,
  command = true,
}: {
  runId: string;
  row: Tool;
  charsMax?: number;
  command?: boolean;
}) {
  const text = outputText(row.output);
  const omitted = row.output.reduce((sum, piece) => sum + piece.omitted, 0);
  const log = row.output.findLast((piece) => piece.logPath !== undefined)?.logPath;
  const line = command ? commandOf(row) : undefined;
  return (
    <>
      <pre className="block out" tabIndex={0} role="group" aria-label={t("run.output")}>
        {line !== undefined && (
          <>
            <span className="p">$ </span>
            <b>{visible(line)}</b>
            {"\n"}
          </>
        )}
        {text === "" ? (
          <span className="p">{row.result === null ? t("run.noOutputYet") : t("run.noOutput")}</span>
        ) : (
          visible(bounded(text, charsMax))
        )}
      </pre>
      {(omitted > 0 || log !== undefined) && (
        <p className="t12 muted">
          {omitted > 0 && t("run.omitted", { bytes: bytesText(omitted) })}{" "}
          {log !== undefined && (
            <Link to="/runs/$id/artifacts/$artifact" params={{ id: runId, artifact: log }}>
              {t("run.fullOutput")}
            </Link>
          )}
        </p>
      )}
    </>
  );
}

/** Begin and end of a long text. */
export function bounded(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const half = Math.floor(charsMax / 2);
  return `${text.slice(0, half)}\n${t("run.leftOut", { count: text.length - 2 * half })}\n${text.slice(-half)}`;
}
