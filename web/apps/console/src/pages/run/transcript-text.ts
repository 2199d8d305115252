// What was said and decided in a run, in reading order, and the same as Markdown.
import type { Row, Rows, RunView } from "@runyard/react";
import { currentLanguage, t } from "../../i18n";
import { told } from "../../i18n/known";
import { absoluteText, failureNext, failureTitle, stateText } from "../../ui";
import { anchorOf, approvalName, askText, callText, outcomeText, rowName, taskText, timeOf, toolText, whoText } from "./words";

/** A paragraph of a transcript. */
export type Entry = { key: string; sequence: number; at: string; who: string } & (
  | { kind: "turn"; number: number }
  | { kind: "said"; by: "agent" | "person"; text: string }
  | { kind: "done"; text: string; code?: string; note?: string }
);

const entries = new WeakMap<Row, { language: string; entry: Entry | null }>();

/** The entry of a row; nothing where it is not part of what was said, done or decided. Each row is read once for a language. */
function entryOf(row: Row, agent: string): Entry | null {
  const language = currentLanguage();
  const known = entries.get(row);
  if (known?.language === language) return known.entry;
  const entry = makeEntry(row, agent);
  entries.set(row, { language, entry });
  return entry;
}

function makeEntry(row: Row, agent: string): Entry | null {
  const base = { key: row.key, sequence: anchorOf(row), at: timeOf(row) };
  switch (row.kind) {
    case "turn":
      return { ...base, who: "", kind: "turn", number: row.number };
    case "message":
      return { ...base, who: agent, kind: "said", by: "agent", text: row.text };
    case "command":
      return { ...base, who: whoText(row.command.actor), kind: "said", by: "person", text: row.command.text ?? rowName(row) };
    case "cancelling":
      return { ...base, who: whoText(row.requested.by), kind: "done", text: rowName(row), note: row.requested.reason };
    case "tool":
      return {
        ...base,
        who: agent,
        kind: "done",
        text: toolText(row.call.tool),
        code: callText(row.call),
        note: row.result === null ? "" : outcomeText(row.result.summary),
      };
    case "patch":
      return { ...base, who: agent, kind: "done", text: t("run.row.patch"), code: row.patch.files.join(", ") };
    case "approval":
      // A question whose decision has a row of its own is told there.
      return row.asked ? null : decision(row, base);
    case "judged":
      return row.judged.effect === "deny"
        ? {
            ...base,
            who: "",
            kind: "done",
            text: `${t("run.row.denied")} ${askText(row.judged.request).text}`,
            code: askText(row.judged.request).object ?? "",
            note: told(row.judged.reason),
          }
        : null;
    case "lifecycle":
      return row.state === "completed" || row.state === "failed" || row.state === "cancelled"
        ? { ...base, who: "", kind: "done", text: stateText(row.state) }
        : null;
    default:
      return null;
  }
}

function decision(row: Extract<Row, { kind: "approval" }>, base: { key: string; sequence: number; at: string }): Entry {
  const { request, resolution } = row.approval;
  const ask = askText(request, resolution?.selection);
  return {
    ...base,
    who: resolution === null ? "" : whoText(resolution.decidedBy),
    kind: "done",
    text: `${approvalName(resolution?.resolution)}: ${ask.text}`,
    code: ask.object ?? "",
    note: resolution?.reason ?? "",
  };
}

/** The entries from a place on, as many as wanted. */
export function transcriptOf(rows: Rows, agent: string, max: number): { entries: Entry[]; left: number } {
  const found: Entry[] = [];
  let left = 0;
  for (let index = 0; index < rows.length; index += 1) {
    const entry = entryOf(rows.at(index), agent);
    if (entry === null) continue;
    if (found.length < max) found.push(entry);
    else left += 1;
  }
  return { entries: found, left };
}

/** The whole transcript as Markdown. */
export function transcriptMarkdown(id: string, view: RunView): string {
  const { entries } = transcriptOf(view.rows, view.agentId ?? "", Number.POSITIVE_INFINITY);
  const head = [
    `# ${t("run.transcriptOf", { id })}`,
    view.createdAt === null ? "" : absoluteText(view.createdAt),
    `## ${t("run.taskTitle")}`,
    taskText(view.task),
  ];
  const end = view.failure === null ? [] : [failureMarkdown(view.failure)];
  return [...head, ...entries.map(entryMarkdown), ...end].filter(Boolean).join("\n\n") + "\n";
}

/** What failed, by all its names, and what to do first. */
function failureMarkdown(failure: NonNullable<RunView["failure"]>): string {
  const names = [failure.code, failure.failureKind, failure.cause].filter((name) => name !== undefined);
  const head = `**${failureTitle(failure)}** (${names.map((name) => `\`${name}\``).join(", ")}): ${failure.message}`;
  return [head, failureNext(failure) ?? ""].filter(Boolean).join("\n\n");
}

function entryMarkdown(entry: Entry): string {
  switch (entry.kind) {
    case "turn":
      return `## ${t("run.turn", { number: entry.number })}`;
    case "said":
      return `**${entry.who}**\n\n${entry.text}`;
    case "done": {
      const code = entry.code ? ` ${fenced(entry.code)}` : "";
      return `- ${entry.text}${code}${entry.note ? ` — ${entry.note}` : ""}${entry.who ? ` (${entry.who})` : ""}`;
    }
  }
}

/** Code that itself has ticks in it is put between more of them. */
function fenced(code: string): string {
  const longest = Math.max(0, ...[...code.matchAll(/`+/g)].map((run) => run[0].length));
  const ticks = "`".repeat(longest + 1);
  const line = code.replaceAll("\n", " ");
  return longest === 0 ? `${ticks}${line}${ticks}` : `${ticks} ${line} ${ticks}`;
}
