// What an agent asks for, read from the wire. A kind that this page does not know keeps its raw form, so that nothing is hidden.

/** What an action does to the world. */
export type SideEffects = "read" | "write" | "destructive";
/** Where changes are brought to. */
export type ApplyTo = { kind: "files" } | { kind: "commit" } | { kind: "branch"; name: string };

/** One thing that an agent wants to do. */
export type Ask =
  | { kind: "read"; path: string }
  | { kind: "write"; path: string; content?: string }
  | { kind: "patch"; files: string[]; patch: string }
  | { kind: "shell"; command: string; cwd: string }
  | { kind: "network"; host: string; port?: number }
  | { kind: "git_commit"; message: string }
  | { kind: "git_push"; remote: string; branch: string }
  | { kind: "publish"; target: string }
  | { kind: "deploy"; target: string }
  | { kind: "secret"; name: string }
  | { kind: "action"; action: string; sideEffects: SideEffects; input: unknown }
  | { kind: "question"; prompt: string; answerSchema: unknown }
  | { kind: "apply"; base: string; target: string; files: string[]; stats: Stats; to: ApplyTo; undo: boolean }
  | { kind: "repeat"; step: string }
  | { kind: "unknown"; name: string; raw: unknown };
/** The kind of a request. */
export type AskKind = Ask["kind"];

/** How much changed. */
export interface Stats {
  files: number;
  insertions: number;
  deletions: number;
  protected: number;
}

type Fields = Record<string, unknown>;

/** Whether it is an object with named fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number => (typeof value === "number" ? value : 0);
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);

/** Reads a request as the API and the events carry it. */
export function readAsk(raw: unknown): Ask {
  const from: Fields = isFields(raw) ? raw : {};
  const kind = text(from["kind"]);
  switch (kind) {
    case "read":
      return { kind, path: text(from["path"]) };
    case "write":
      return { kind, path: text(from["path"]), ...(typeof from["content"] === "string" && { content: from["content"] }) };
    case "patch":
      return { kind, files: texts(from["files"]), patch: text(from["patch"]) };
    case "shell":
      return { kind, command: text(from["command"]), cwd: text(from["cwd"]) };
    case "network":
      return { kind, host: text(from["host"]), ...(typeof from["port"] === "number" && { port: from["port"] }) };
    case "git_commit":
      return { kind, message: text(from["message"]) };
    case "git_push":
      return { kind, remote: text(from["remote"]), branch: text(from["branch"]) };
    case "publish":
    case "deploy":
      return { kind, target: text(from["target"]) };
    case "secret":
      return { kind, name: text(from["name"]) };
    case "action":
      return { kind, action: text(from["action"]), sideEffects: sideEffects(from["sideEffects"]), input: from["input"] };
    case "question":
      return { kind, prompt: text(from["prompt"]), answerSchema: from["answerSchema"] };
    case "apply":
      return {
        kind,
        base: text(from["base"]),
        target: text(from["target"]),
        files: texts(from["files"]),
        stats: stats(from["stats"]),
        to: applyTo(from["to"]),
        undo: from["undo"] === true,
      };
    case "repeat":
      return { kind, step: text(from["step"]) };
    default:
      return { kind: "unknown", name: kind, raw };
  }
}

// What is not known to only read is taken for the worst.
function sideEffects(raw: unknown): SideEffects {
  return raw === "read" || raw === "write" ? raw : "destructive";
}

function stats(raw: unknown): Stats {
  const from: Fields = isFields(raw) ? raw : {};
  return {
    files: count(from["files"]),
    insertions: count(from["insertions"]),
    deletions: count(from["deletions"]),
    protected: count(from["protected"]),
  };
}

/** Reads where changes are brought to: `files`, `commit` or `{branch: name}`. */
export function applyTo(raw: unknown): ApplyTo {
  if (raw === "commit") return { kind: "commit" };
  if (isFields(raw) && typeof raw["branch"] === "string") return { kind: "branch", name: raw["branch"] };
  return { kind: "files" };
}
