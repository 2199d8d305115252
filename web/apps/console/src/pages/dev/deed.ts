// What an action does, in words.
import type { ActionManifest } from "@runyard/react";

const VERBS = [
  "add", "apply", "approve", "archive", "cancel", "clear", "close", "complete", "create", "delete", "deploy", "drop", "erase",
  "install", "kill", "merge", "move", "publish", "purge", "push", "reject", "release", "remove", "reset", "resolve", "restart",
  "restore", "revoke", "rotate", "run", "send", "set", "start", "stop", "undo", "update", "wipe",
];

/** What an action does, verb first. A title that somebody wrote stands; one made of a name such as task_delete is turned round. */
export function deed(action: Pick<ActionManifest, "name" | "title">): string {
  const words = action.name.split("_");
  const made = action.title.toLowerCase() === words.join(" ");
  const last = words.at(-1) ?? "";
  if (made && VERBS.includes(last)) words.unshift(words.pop() ?? "");
  const text = made ? words.join(" ") : action.title;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The actions that fit what was typed: the named one first, then those with the words in their name, then the rest. */
export function fitting<A extends Pick<ActionManifest, "name" | "title" | "description">>(actions: readonly A[], filter: string): A[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (action: A) => `${action.name} ${action.title} ${action.description}`.toLowerCase();
  const rank = (action: A) => (action.name === words.join("_") ? 0 : words.every((word) => action.name.includes(word)) ? 1 : 2);
  return actions.filter((action) => words.every((word) => text(action).includes(word))).sort((one, other) => rank(one) - rank(other));
}
