// Words for what events carry. Payload stays as it is; only what is around it is translated.
import type { Row, RuntimeError, RunView, Task, Who } from "@runyard/react";
import { maybe, plural, t } from "../../i18n";
import { known } from "../../i18n/en/known";
import { knownAs, told } from "../../i18n/known";
import { durationText, spanText, stateText, visible } from "../../ui";
import { effectLabel, inWords } from "../approvals/label";
import { readAsk } from "../approvals/request";

/** A task in words: its text, or the action that it is. */
export function taskText(task: Task | null): string {
  if (task === null) return "";
  return task.kind === "text" ? task.text : t("run.taskAction", { action: task.action });
}

/** What a run is to do. One that takes back says so; its task names the other run only by its whole id. */
export function runTitle({ task, carries }: Pick<RunView, "task" | "carries">): string {
  return carries?.undo === true ? t("run.undoTitle", { run: shortRun(carries.of) }) : taskText(task);
}

/** The beginning and the end of a run's id name it well enough beside its title. */
export function shortRun(id: string): string {
  return id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
}

/** Whether a task is to take back what a run applied; lists say no more of such a run. */
export function takesBack(task: unknown, of: string): boolean {
  const found = typeof task === "string" ? knownAs(task) : undefined;
  return found?.key === "takeBack" && found.values["run"] === of;
}

/** Whether a diff is what taking back would change: it has files and no lines. */
export function isUndo({ base }: { base: string }): boolean {
  return base === known.applied;
}

/** How much a diff changes. */
export function diffText(diff: { base: string; paths: readonly string[]; stats?: { files: number } }): string {
  const files = diff.stats?.files ?? diff.paths.length;
  if (files === 0) return t("run.noChanges");
  return isUndo(diff) ? plural(files, "run.undoOne", "run.undoMany") : filesText(files);
}

/** The run's own diff and patch, which it lists before what else it produced. */
const OWN_ARTIFACTS = 2;

/** How many artifacts a run lists: what it changed is among them, twice. */
export function artifactCount({ artifacts, review }: Pick<RunView, "artifacts" | "review">): number {
  return artifacts.length + (review !== null && review.diff.paths.length > 0 ? OWN_ARTIFACTS : 0);
}

/** Why a run ended without a diff: only one that had no checkout does so at its end, and any that ends early. */
export function noDiffText({ missing, failure, cancelled }: RunView): string {
  if (missing.length > 0) return t("run.noDiff.missing");
  return t(failure !== null ? "run.noDiff.failed" : cancelled !== null ? "run.noDiff.cancelled" : "run.noDiff.none");
}

/** The first line of a text. */
export function firstLine(text: string, charsMax = 160): string {
  const line = text.trimStart().split("\n", 1)[0]?.trim() ?? "";
  return line.length > charsMax ? `${line.slice(0, charsMax)}…` : line;
}

/** Who, as a record names them. */
export function whoText(who: Who): string {
  return who.kind === "agent" ? t("run.agentWho", { id: who.id }) : who.id;
}

/** What is asked: words and, apart from them, the object as it stands in the request. */
export function askText(request: unknown, chosen?: readonly unknown[]): { text: string; object?: string } {
  const ask = readAsk(request);
  // What was approved is what was chosen, not all that was asked for.
  if (ask.kind === "apply" && chosen !== undefined) {
    return { text: t("run.applyChosen", { files: filesText(chosen.length), of: ask.stats.files }) };
  }
  if (ask.kind === "question") return { text: `${t("run.question")} ${visible(firstLine(ask.prompt))}` };
  const { text, code } = inWords(effectLabel(ask));
  return code === undefined ? { text } : { text, object: code };
}

/** A tool's name for people. */
export function toolText(tool: string): string {
  return maybe(`run.tool.${tool}`) ?? tool;
}

/** What a step does, in a line: the tool's name stands before it already. */
export function callText({ tool, summary }: { tool: string; summary: string }): string {
  return summary.startsWith(`${tool} `) ? summary.slice(tool.length + 1) : summary;
}

/** A patch's summary, where it says more than which files it changes. */
export function patchText({ files, summary }: { files: readonly string[]; summary: string }): string {
  const named = files.join(", ");
  const line = firstLine(summary);
  return line === firstLine(named) || line === firstLine(`wrote ${named}`) ? "" : line;
}

const WORTH_SAYING_MS = 100;

/** How long a row took, the same wherever it is said. */
export function tookText(row: Row): string {
  const ms = Date.parse(row.endAt) - Date.parse(row.at);
  return ms < WORTH_SAYING_MS ? spanText(ms) : durationText(ms, true);
}

/** An event's own duration, where it has one worth saying. */
export function rowDuration(row: Row): string {
  const ms = Date.parse(row.endAt) - Date.parse(row.at);
  const lasts = (row.kind === "message" && row.complete) || (row.kind === "tool" && row.result !== null);
  return lasts && ms >= WORTH_SAYING_MS ? tookText(row) : "";
}

/** What a command's exit is called: `exit 0` where that is known. */
export function outcomeText(summary: string): string {
  const exit = /^exit code (\d+)/.exec(summary);
  return exit === null ? firstLine(summary, 48) : `exit ${exit[1]}`;
}

/** The reason why something cannot be relied on. What the page itself refused is said in words. */
export function degradedText(reason: string): string {
  const illegal = /^illegal:([^:]*):(.*)$/.exec(reason);
  return illegal === null ? told(reason) : t("run.illegal", { state: stateText(illegal[1] ?? ""), type: illegal[2] ?? "" });
}

/** Where the agent works from. */
export function baseText(view: RunView): string | undefined {
  const base = view.review?.diff.base;
  if (base !== undefined) return /^[0-9a-f]{40,64}$/.test(base) ? base.slice(0, 10) : told(base);
  return checkText(view, "checkout");
}

/** What holds the agent in. */
export function sandboxText(view: RunView): string | undefined {
  const policy = view.executionPolicy;
  return checkText(view, "sandbox") ?? (policy === null ? undefined : t(`run.sandboxWord.${policy.sandbox}`));
}

/** What a check found, as briefly as the rail has room for; all of it is in the detail of the run's start. */
function checkText(view: RunView, check: string): string | undefined {
  const found = view.started?.checks[check];
  if (found === undefined) return undefined;
  const { key, values = {} } = knownAs(found.split("; ", 1)[0] ?? "") ?? {};
  const inTheirs = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, told(value)]));
  return maybe(`run.inShort.${key}`, inTheirs) ?? told(found);
}

/** How many of something, in the language's way. */
export function filesText(count: number): string {
  return plural(count, "run.oneFile", "run.files");
}

/** The event that stands for a row: the one whose time it shows. A gap has none; what ended it does for it. */
export function anchorOf(row: Row): number {
  return row.kind === "gap" ? row.last : (decisionOf(row)?.sequence ?? row.first);
}

/** The time that a row shows. */
export function timeOf(row: Row): string {
  return decisionOf(row)?.at ?? row.at;
}

/** A row of an approval is the decision, once there is one: the audit names it by the same event. */
function decisionOf(row: Row) {
  return row.kind === "approval" && !row.asked ? row.approval.resolution : null;
}

/** What a row is, in a word or two: the start of its name for those who do not see it. */
export function rowName(row: Row): string {
  switch (row.kind) {
    case "tool":
      return toolText(row.call.tool);
    case "lifecycle":
      return stateText(row.state);
    case "unknown":
      return row.type;
    case "runtime":
      return row.died !== undefined
        ? t("run.row.died")
        : t(row.error === undefined ? "run.row.runtime" : isNotice(row.error) ? "run.row.notice" : "run.row.runtimeError");
    case "approval":
      return approvalName(row.asked ? undefined : row.approval.resolution?.resolution);
    case "judged":
      return row.judged.effect === "deny" ? t("run.row.denied") : t("run.row.judged");
    case "command":
      return maybe(`run.command.${row.command.command}`) ?? row.command.command;
    case "turn":
      return t("run.turn", { number: row.number });
    default:
      return t(`run.row.${row.kind}`);
  }
}

/** Whether the backend only tells something and goes on: it names no kind of failure, and tries nothing again. */
export function isNotice({ failureKind, retrying }: RuntimeError): boolean {
  return failureKind === undefined && !retrying;
}

/** What became of an approval, as a heading. */
export function approvalName(resolution: string | undefined): string {
  return (resolution === undefined ? undefined : maybe(`run.resolution.${resolution}`)) ?? t("run.row.approval");
}
