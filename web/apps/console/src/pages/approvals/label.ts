// What a request is called: in words, on the button that takes its effect, and what is typed before a dangerous one.
import { t, type Key, type Values } from "../../i18n";
import type { EffectLabel } from "../../ui/button";
import { effect, type EffectKey } from "../../ui/effect";
import type { IconName } from "../../ui/icon";
import { exact } from "../../ui/visible";
import type { Ask } from "./request";

/** How far a yes reaches. */
export type Scope = "once" | "run" | "session" | "project";
/** All of them, the narrowest first. */
export const SCOPES: readonly Scope[] = ["once", "run", "session", "project"];

/** The label of an effect before it is put into words: the object stands behind them as it is. */
export interface Label {
  key: EffectKey;
  values?: Values;
  code?: string;
}

/** So much of an object stands on a button, from its start and from its end; all of it is shown above. */
const OBJECT_CHARS_MAX = 80;
const END_CHARS = 32;
/** A longer word is not typed by anybody. */
const WORD_CHARS_MAX = 64;

/** The words of a label. */
export function inWords(label: Label): EffectLabel {
  return effect(label.key, label.values, label.code === undefined ? undefined : short(exact(label.code)));
}

/** The effect that the button takes: verb, object and scope. `answer` is what a question would be answered with. */
export function effectLabel(ask: Ask, scope: Scope = "once", answer?: string): Label {
  const named = label(ask, answer);
  return { ...named, values: { scope: t(`approvals.reach.${scope}`), ...named.values } };
}

function label(ask: Ask, answer?: string): Label {
  switch (ask.kind) {
    case "read":
      return { key: "approvals.effect.read", code: ask.path };
    case "write":
      return { key: "approvals.effect.write", code: ask.path };
    case "patch":
      return ask.files.length === 1
        ? { key: "approvals.effect.patchOne", code: ask.files[0] ?? "" }
        : { key: "approvals.effect.patch", values: { count: ask.files.length } };
    case "shell":
      return { key: "approvals.effect.shell", code: ask.command };
    case "network":
      return { key: "approvals.effect.network", code: hostPort(ask) };
    case "git_commit":
      return { key: "approvals.effect.git_commit", code: ask.message };
    case "git_push":
      return { key: "approvals.effect.git_push", code: `${ask.branch} → ${ask.remote}` };
    case "publish":
      return { key: "approvals.effect.publish", code: ask.target };
    case "deploy":
      return { key: "approvals.effect.deploy", code: ask.target };
    case "secret":
      return { key: "approvals.effect.secret", code: ask.name };
    case "action":
      return { key: "approvals.effect.action", code: ask.action };
    case "question":
      return answer === undefined ? { key: "approvals.effect.question" } : { key: "approvals.effect.answer", code: answer };
    case "apply":
      return applyLabel(ask);
    case "repeat":
      return { key: "approvals.effect.repeat", code: ask.step };
    case "unknown":
      return { key: "approvals.effect.unknown", code: ask.name };
  }
}

/** How many files an approval would apply as a whole: protected ones only where somebody names them. */
export function appliedFiles(ask: Extract<Ask, { kind: "apply" }>): number {
  return ask.undo ? ask.stats.files : ask.stats.files - ask.stats.protected;
}

function applyLabel(ask: Extract<Ask, { kind: "apply" }>): Label {
  const count = appliedFiles(ask);
  const one = count === 1;
  const values = { count };
  if (ask.to.kind === "branch") {
    if (ask.undo) return { key: "approvals.effect.undoBranch", code: ask.to.name };
    return { key: one ? "approvals.effect.branchOne" : "approvals.effect.branch", code: ask.to.name, values };
  }
  if (ask.undo) return { key: one ? "approvals.effect.undoOne" : "approvals.effect.undo", values };
  if (ask.to.kind === "commit") return { key: one ? "approvals.effect.commitOne" : "approvals.effect.commit", values };
  return { key: one ? "approvals.effect.applyOne" : "approvals.effect.apply", values };
}

/** What is asked, as a heading without its object. */
export function headingKey(ask: Ask): Key {
  if (ask.kind === "apply" && ask.undo) return "approvals.what.undo";
  return `approvals.what.${ask.kind}`;
}

/** The host with its port, as both are connected to. */
export function hostPort(ask: { host: string; port?: number }): string {
  const host = ask.host.includes(":") ? `[${ask.host}]` : ask.host;
  return ask.port === undefined ? ask.host : `${host}:${ask.port}`;
}

const ICONS: Record<Ask["kind"], IconName> = {
  read: "file",
  write: "file",
  patch: "patch",
  shell: "terminal",
  network: "globe",
  git_commit: "check",
  git_push: "up",
  publish: "up",
  deploy: "up",
  secret: "lock",
  action: "dev",
  question: "question",
  apply: "applying",
  repeat: "retry",
  unknown: "question",
};

/** The icon of what is asked. */
export function askIcon(ask: Ask): IconName {
  return ask.kind === "apply" && ask.undo ? "retry" : ICONS[ask.kind];
}

/** The object as one line that fits a button. What is left out is in its middle: the end of a command counts like its start. */
export function short(object: string): string {
  const line = object.trim().replace(/\s*\n\s*/g, " ⏎ ");
  const letters = [...line];
  if (letters.length <= OBJECT_CHARS_MAX) return line;
  return `${letters.slice(0, OBJECT_CHARS_MAX - END_CHARS).join("")} … ${letters.slice(-END_CHARS).join("")}`;
}

/** What is typed before a high-risk effect is enabled: a name out of the request itself. */
export function typedWord(ask: Ask): string {
  const word = candidate(ask);
  return word !== "" && word.length <= WORD_CHARS_MAX && /^[!-~\p{L}\p{N}]+$/u.test(word) ? word : ask.kind;
}

function candidate(ask: Ask): string {
  switch (ask.kind) {
    case "git_push":
      return ask.branch;
    case "publish":
    case "deploy":
      return ask.target.trim().split(/\s+/)[0] ?? "";
    case "secret":
      return ask.name;
    case "action":
      return ask.action;
    case "network":
      return ask.host;
    case "shell":
      return ask.command.trim().split(/\s+/)[0] ?? "";
    case "read":
    case "write":
      return base(ask.path);
    case "patch":
      return base(ask.files[0] ?? "");
    case "repeat":
      return ask.step.trim().split(/\s+/)[0] ?? "";
    case "apply":
      return ask.to.kind === "branch" ? ask.to.name : base(ask.files[0] ?? "");
    case "question":
    case "git_commit":
    case "unknown":
      return "";
  }
}

function base(path: string): string {
  return path.split("/").at(-1) ?? "";
}

/** Which scopes a yes may have, as the hub takes them. What no rule says exactly reaches no further than the run. */
export function scopesFor(ask: Ask, redacted: boolean): readonly Scope[] {
  switch (ask.kind) {
    case "apply":
    case "repeat":
    case "question":
    case "unknown":
      return ["once"];
    default:
      return redacted || ruleFor(ask) === null ? ["once", "run"] : SCOPES;
  }
}

/** What a rule can be about that follows from a yes. */
export type RuleKind = "read" | "write" | "shell" | "network" | "git_push" | "publish" | "deploy";

/** The rule that a lasting yes would be, as far as this page can tell; the hub has the last word. */
export function ruleFor(ask: Ask): { kind: RuleKind; match: string } | null {
  const rule = exactRule(ask);
  // What is a character there would stand for many here.
  return rule === null || /[*?]/.test(rule.match) ? null : rule;
}

function exactRule(ask: Ask): { kind: RuleKind; match: string } | null {
  switch (ask.kind) {
    case "read":
    case "write":
      // Without a slash it would be about every file of that name.
      return ask.path.includes("/") ? { kind: ask.kind, match: ask.path } : null;
    case "shell":
      return { kind: ask.kind, match: ask.command };
    case "network":
      return { kind: ask.kind, match: ask.host };
    case "git_push":
      return { kind: ask.kind, match: `${ask.remote} ${ask.branch}` };
    case "publish":
    case "deploy":
      return { kind: ask.kind, match: ask.target };
    default:
      return null;
  }
}
