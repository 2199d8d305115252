// What a run is called: the first line of its task, with nothing hidden in it.
import { prose } from "../ui/visible";

/** A task as lists give it, or as events do. */
export type TaskLike = string | { text: string } | { action: string } | null | undefined;

/** The first line of a text that says something, or the action's name. */
export function taskTitle(task: TaskLike): string {
  if (task === null || task === undefined) return "";
  if (typeof task === "object" && "action" in task) return task.action;
  const text = typeof task === "string" ? task : task.text;
  return prose(text.split("\n").map((line) => line.trim()).find((line) => line !== "") ?? "");
}
