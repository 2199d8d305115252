// What every call returns.

/** What is wrong with one place of an input. */
export interface Issue {
  path: (string | number)[];
  message: string;
}

/** Why a call failed. */
export interface Failing {
  code: string;
  message: string;
  issues: Issue[];
  retryable: boolean;
  retryAfterMs?: number;
  failureKind?: string;
}

/** A line that an action wrote. */
export interface LogLine {
  level: string;
  message: string;
  time: string;
  fields: Record<string, unknown>;
}

/** Something that an action produced, as it says it. */
export type ProducedArtifact = Record<string, unknown>;

/** About the invocation. */
export interface Meta {
  action: string | null;
  invocationId: string;
  surface: string;
  durationMs: number;
  [more: string]: unknown;
}

/** What every envelope has, whatever came of the call. */
export interface Around {
  artifacts: ProducedArtifact[];
  logs: LogLine[];
  meta: Meta;
}

/** A call that went well. */
export type Success<T> = { ok: true; data: T } & Around;
/** A call that did not. */
export type Refusal = { ok: false; error: Failing } & Around;
/** What every call returns; none throws. */
export type Envelope<T> = Success<T> | Refusal;

/** How far an action is, as it says it. */
export interface Progress {
  message: string;
  percent: number | null;
}

/** A failure that no server said. */
export function refusal(code: string, message: string, meta: Partial<Meta>, more?: Partial<Failing>): Refusal {
  return {
    ok: false,
    error: { code, message, issues: [], retryable: false, ...more },
    artifacts: [],
    logs: [],
    meta: { action: null, invocationId: "", surface: "react", durationMs: 0, ...meta },
  };
}

/** Whether something that was read has the shape of an envelope. */
export function isEnvelope(value: unknown): value is Envelope<unknown> {
  if (!isRecord(value) || !Array.isArray(value["logs"]) || !isRecord(value["meta"])) return false;
  const error = value["error"];
  return value["ok"] === true || (value["ok"] === false && isRecord(error) && typeof error["code"] === "string");
}

/** Whether it is an object that is no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
