// Speaks HTTP with the hub. Whatever happens, a call gives an envelope.

import { isEnvelope, isRecord, refusal, type Envelope, type LogLine } from "./envelope.js";
import type { Meta, ProducedArtifact, Progress, Refusal } from "./envelope.js";
import { readJson } from "./json.js";
import { SseParser, type SseMessage } from "./sse.js";

/** How a client says who it is. */
export type Auth = { kind: "session"; pageKey?: () => string | null } | { kind: "token"; token: string };

/** How an action is to be called. */
export interface CallOptions {
  confirm?: boolean;
  idempotencyKey?: string;
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** How long all attempts together may take. */
  deadlineMs?: number;
  /** Whether the hub tries again what may succeed then. */
  retry?: boolean | { retries?: number; delayMs?: number };
  signal?: AbortSignal;
}

/** What is told while an action works. */
export interface FollowOptions extends CallOptions {
  onLog?: (line: LogLine) => void;
  onProgress?: (progress: Progress) => void;
  onArtifact?: (artifact: ProducedArtifact) => void;
}

/** The code of a call whose answer did not come. */
export const CONNECTION_FAILED = "CONNECTION_FAILED";
/** The code of a call that the caller ended. */
export const CANCELLED = "CANCELLED";
/** Where a browser keeps the page's key. */
export const PAGE_KEY = "runyard.page";

/** Where requests go and what they carry. */
export interface TransportOptions {
  baseUrl: string;
  auth: Auth;
  fetch: typeof fetch;
  surface: "react" | "dev";
  /** Told when the hub does not know the caller any more. */
  onUnauthorized: () => void;
}

/** What a failure of ours says about its call. */
type About = Pick<Meta, "action" | "surface">;

/** Sends requests. */
export class Transport {
  constructor(private readonly options: TransportOptions) {}

  /** The word for where calls come from. */
  get surface(): string {
    return this.options.auth.kind === "token" ? "http" : this.options.surface;
  }

  /** Where the actions are. */
  get actionsPath(): string {
    return this.options.surface === "dev" ? "/dev/api/actions" : "/api/v1/actions";
  }

  /** Sends a request; rejects only where no answer came. */
  async send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    const { auth, baseUrl, fetch } = this.options;
    if (auth.kind === "token") headers.set("authorization", `Bearer ${auth.token}`);
    else headers.set("x-runyard-page", (auth.pageKey ?? storedPageKey)() ?? "");
    const response = await fetch(`${baseUrl}${path}`, { ...init, headers });
    if (response.status === 401) this.options.onUnauthorized();
    return response;
  }

  /** Sends a request whose answer is an envelope. */
  async ask(path: string, init: RequestInit, about: { action?: string; again?: boolean } = {}): Promise<Envelope<unknown>> {
    const meta = { action: about.action ?? null, surface: this.surface };
    try {
      return await this.readEnvelope(await this.send(path, init), meta);
    } catch (error) {
      return this.failure(error, init.signal, meta, about.again ?? false);
    }
  }

  /** Calls an action. */
  async call(name: string, input: unknown, options: CallOptions = {}): Promise<Envelope<unknown>> {
    const init = this.#invocation(input, options, "application/json");
    if (init === null) return unwritable({ action: name, surface: this.surface });
    return this.ask(this.#invokePath(name), init, { action: name, again: options.idempotencyKey !== undefined });
  }

  /** Calls an action and tells what it says meanwhile. */
  async follow(name: string, input: unknown, options: FollowOptions = {}): Promise<Envelope<unknown>> {
    const meta = { action: name, surface: this.surface };
    const init = this.#invocation(input, options, "text/event-stream");
    if (init === null) return unwritable(meta);
    const heard = new Heard(options);
    try {
      const response = await this.send(this.#invokePath(name), init);
      if (!isEventStream(response) || response.body === null) return await this.readEnvelope(response, meta);
      for await (const message of messages(response.body)) {
        const told = readJson(message.data);
        if (!isRecord(told)) continue;
        if (told["type"] === "result" && isEnvelope(told["envelope"])) return told["envelope"];
        heard.take(told);
      }
      throw new Error("the connection ended before the result came");
    } catch (error) {
      const { logs, artifacts } = heard;
      return { ...this.failure(error, options.signal, meta, options.idempotencyKey !== undefined), logs, artifacts };
    }
  }

  /** The envelope that a response holds. */
  async readEnvelope(response: Response, meta: About): Promise<Envelope<unknown>> {
    const text = await response.text();
    try {
      const read = readJson(text);
      if (isEnvelope(read)) return read;
    } catch {
      // Something in between answered, and not the hub.
    }
    const message = `The answer (status ${response.status}) did not come from Runyard. Is it running at this address?`;
    return refusal(CONNECTION_FAILED, message, meta, { retryable: response.status >= 500 });
  }

  /** The envelope of a request that was answered by nobody. */
  failure(error: unknown, signal: AbortSignal | null | undefined, meta: About, again: boolean): Refusal {
    if (signal?.aborted === true) return refusal(CANCELLED, "Action was cancelled.", meta);
    const cause = error instanceof Error ? error.message : String(error);
    return refusal(CONNECTION_FAILED, `Runyard could not be reached: ${cause}.`, meta, { retryable: again });
  }

  #invokePath(name: string): string {
    return `${this.actionsPath}/${encodeURIComponent(name)}/invoke`;
  }

  /** The request of an invocation, or null where its input is no JSON. */
  #invocation(input: unknown, options: FollowOptions, accept: string): RequestInit | null {
    const { signal, onLog: _, onProgress: __, onArtifact: ___, ...said } = options;
    const headers = { "content-type": "application/json", accept };
    try {
      // What is undefined is left out: a missing input is not the same as null.
      const body = JSON.stringify({ input, ...said });
      return { method: "POST", headers, body, ...(signal === undefined ? {} : { signal }) };
    } catch {
      return null;
    }
  }
}

/** The envelope of an input that cannot be written: one that holds itself, or is too deep. */
function unwritable(meta: About): Refusal {
  const issues = [{ path: [], message: "Expected what can be written as JSON." }];
  return refusal("VALIDATION_ERROR", "Invalid action input.", meta, { issues });
}

/** Whether a response is a stream of events. */
export function isEventStream(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

/** The messages of a stream as they come, with word of every piece of it. It is given up when nobody wants more of them. */
export async function* messages(
  body: ReadableStream<Uint8Array>,
  heard: () => void = () => undefined,
): AsyncGenerator<SseMessage, void, void> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** What an action said so far. */
class Heard {
  readonly logs: LogLine[] = [];
  readonly artifacts: ProducedArtifact[] = [];

  constructor(private readonly options: FollowOptions) {}

  take(told: Record<string, unknown>): void {
    const { type, level, message, time, percent, fields, artifact } = told;
    if (type === "artifact" && isRecord(artifact)) {
      this.artifacts.push(artifact);
      this.options.onArtifact?.(artifact);
    }
    if (type !== "log" && type !== "progress") return;
    // A report of progress stands among the logs, too.
    const line = {
      level: typeof level === "string" ? level : "info",
      message: String(message ?? ""),
      time: String(time ?? ""),
      fields: isRecord(fields) ? fields : {},
    };
    this.logs.push(line);
    const { message: said } = line;
    if (type === "progress") this.options.onProgress?.({ message: said, percent: typeof percent === "number" ? percent : null });
    this.options.onLog?.(line);
  }
}

/** The page's key as this browser keeps it. */
export function storedPageKey(): string | null {
  try {
    return typeof localStorage === "undefined" ? null : localStorage.getItem(PAGE_KEY);
  } catch {
    // A browser may forbid it, and then there is no session.
    return null;
  }
}

/** Keeps the page's key, or forgets it. */
export function storePageKey(key: string | null): void {
  try {
    if (key === null) localStorage.removeItem(PAGE_KEY);
    else localStorage.setItem(PAGE_KEY, key);
  } catch {
    // Then the session lasts as long as the page.
  }
}
