// What an action does, in words.
import type { ActionManifest } from "@runyard/react";
import { t } from "../../i18n";
import type { EffectLabel } from "../../ui/button";
import { effect } from "../../ui/effect";
import { visible } from "../../ui/visible";

const VERBS = [
  "add", "apply", "approve", "archive", "cancel", "clear", "close", "command", "complete", "create", "delete", "deploy", "drop",
  "erase", "install", "kill", "merge", "move", "publish", "purge", "push", "reject", "release", "remove", "reset", "resolve",
  "restart", "restore", "revoke", "rotate", "run", "send", "set", "snooze", "start", "stop", "undo", "update", "wipe",
];
/** A word that says so little needs the action's name beside it. */
const SINGLE = /^\S+$/;

/** What an action does, verb first. A title that somebody wrote stands; one made of a name such as task_delete is turned round. */
export function deed(action: Pick<ActionManifest, "name" | "title">): string {
  const words = action.name.split("_");
  const made = action.title.toLowerCase() === words.join(" ");
  const last = words.at(-1) ?? "";
  if (made && VERBS.includes(last)) words.unshift(words.pop() ?? "");
  const text = made ? words.join(" ") : action.title;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What stands on the button that calls an action: a read says that it only reads, and what takes effect says verb and object. */
export function callLabel(action: Pick<ActionManifest, "name" | "title" | "sideEffects">): EffectLabel {
  if (action.sideEffects === "read") return { text: t("dev.callRead", { name: visible(action.name) }) };
  const text = visible(deed(action));
  return SINGLE.test(text) ? effect("dev.effect.call", { name: visible(action.name) }) : effect("dev.effect.run", { deed: text });
}

/** The actions that fit what was typed: the named one first, then those with the words in their name, then the rest. */
export function fitting<A extends Pick<ActionManifest, "name" | "title" | "description">>(actions: readonly A[], filter: string): A[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (action: A) => `${action.name} ${action.title} ${action.description}`.toLowerCase();
  const rank = (action: A) => (action.name === words.join("_") ? 0 : words.every((word) => action.name.includes(word)) ? 1 : 2);
  return actions.filter((action) => words.every((word) => text(action).includes(word))).sort((one, other) => rank(one) - rank(other));
}
