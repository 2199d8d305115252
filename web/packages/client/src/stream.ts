// One stream of events that is kept open: it comes back where it was, at its own pace, and rests while nobody can see it.

import { pause, type Environment } from "./environment.js";
import type { SseMessage } from "./sse.js";
import { isEventStream, messages, type Transport } from "./transport.js";
import type { Link } from "./view.js";

/** A stream says something every 15 seconds; after so long without a word it is taken for dead. */
export const SILENCE_MS_MAX = 45_000;
/** After so long in a hidden page a stream is closed: a browser has six connections to a host for all its pages, and each uses two. */
export const HIDDEN_MS_MAX = 5_000;
/** The first wait before another attempt, and the longest. */
export const RETRY_MS_MIN = 500;
export const RETRY_MS_MAX = 30_000;
/** A connection that lasted so long was a good one, and the waits begin anew. */
const GOOD_MS_MIN = 5_000;

/** What a stream is about. */
export interface StreamOptions {
  path: string;
  /** The id after which it goes on, or null at its beginning. */
  lastId: () => string | null;
  onMessage: (message: SseMessage) => void;
  onLink: (link: Link) => void;
  /** Whether what came was the end, so that a closed stream is not opened again. */
  isOver: () => boolean;
  /** When something last came, for people. */
  lastAt: () => string | null;
}

type Attempt = { kind: "over" } | { kind: "refused"; code: string; message: string } | { kind: "again"; waitMs: number };

/** The wait before an attempt: twice as long each time, less up to a half by chance so that not all come at once. */
export function retryDelay(attempts: number, random: number): number {
  const most = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempts, 16));
  return Math.round(most * (1 - random / 2));
}

/** A stream of events that stays open until it is stopped. */
export class EventStream {
  #stop: AbortController | null = null;
  #connection: AbortController | null = null;
  #wake: () => void = () => undefined;
  #attempts = 0;
  #brokenSince: string | null = null;
  #resting = false;

  constructor(
    private readonly transport: Transport,
    private readonly environment: Environment,
    private readonly options: StreamOptions,
  ) {}

  /** Opens it; one that is open stays as it is. */
  start(): void {
    if (this.#stop !== null) return;
    const stop = new AbortController();
    this.#stop = stop;
    this.#attempts = 0;
    this.#brokenSince = null;
    this.options.onLink({ kind: "connecting" });
    void this.#keepOpen(stop.signal);
  }

  /** Closes it for good, until it is started again. */
  stop(): void {
    this.#stop?.abort();
    this.#stop = null;
    this.#connection?.abort();
  }

  /** Tries at once where it waits or was refused; what is open stays open. */
  retry(): void {
    this.start();
    this.#wake();
  }

  /** Gives up the connection, to ask again from the last id. */
  breakOff(): void {
    this.#connection?.abort();
  }

  async #keepOpen(stopped: AbortSignal): Promise<void> {
    const unwatch = this.#watchPage(stopped);
    try {
      while (!stopped.aborted) {
        if (this.#resting) {
          await pause(this.environment, HIDDEN_MS_MAX, stopped, (wake) => (this.#wake = wake));
          continue;
        }
        const done = await this.#attempt(stopped);
        if (stopped.aborted) return;
        if (done.kind !== "again") {
          // From here on it can be started anew, also by whoever is told.
          this.#stop = null;
          return this.options.onLink(done.kind === "over" ? { kind: "ended" } : done);
        }
        await this.#wait(done.waitMs, stopped);
      }
    } finally {
      unwatch();
    }
  }

  async #wait(leastMs: number, stopped: AbortSignal): Promise<void> {
    const now = this.environment.now();
    const ms = Math.max(leastMs, retryDelay(this.#attempts, this.environment.random()));
    this.#attempts += 1;
    this.#brokenSince ??= new Date(now).toISOString();
    const lastAt = this.options.lastAt();
    const retryAt = new Date(now + ms).toISOString();
    this.options.onLink({ kind: "waiting", since: this.#brokenSince, retryAt, ...(lastAt === null ? {} : { lastAt }) });
    await pause(this.environment, ms, stopped, (wake) => (this.#wake = wake));
  }

  async #attempt(stopped: AbortSignal): Promise<Attempt> {
    const connection = new AbortController();
    this.#connection = connection;
    const end = () => connection.abort();
    stopped.addEventListener("abort", end);
    const begun = this.environment.now();
    try {
      const lastId = this.options.lastId();
      const headers = { accept: "text/event-stream", ...(lastId === null ? {} : { "last-event-id": lastId }) };
      const init: RequestInit = { headers, signal: connection.signal, cache: "no-store" };
      const response = await this.#heard(connection, () => this.transport.send(this.options.path, init));
      if (response.status === 204) return { kind: "over" };
      if (!isEventStream(response) || response.body === null) return await this.#refused(response);
      this.#brokenSince = null;
      this.options.onLink({ kind: "live" });
      await this.#read(response.body, connection);
    } catch {
      // A connection that breaks off is made again; what was wrong with it shows in the next answer.
    } finally {
      stopped.removeEventListener("abort", end);
      connection.abort();
    }
    if (this.options.isOver()) return { kind: "over" };
    if (this.environment.now() - begun >= GOOD_MS_MIN) this.#attempts = 0;
    return { kind: "again", waitMs: 0 };
  }

  async #read(body: ReadableStream<Uint8Array>, connection: AbortController): Promise<void> {
    await this.#heard(connection, async (heard) => {
      for await (const message of messages(body, heard)) this.options.onMessage(message);
    });
  }

  /** Does something that has to be heard of now and then, or else the connection is given up. */
  async #heard<T>(connection: AbortController, run: (heard: () => void) => Promise<T>): Promise<T> {
    let lastMs = this.environment.now();
    let cancel: () => void = () => undefined;
    const look = () => {
      const left = SILENCE_MS_MAX - (this.environment.now() - lastMs);
      if (left <= 0) connection.abort();
      else cancel = this.environment.after(left, look);
    };
    look();
    try {
      return await run(() => (lastMs = this.environment.now()));
    } finally {
      cancel();
    }
  }

  async #refused(response: Response): Promise<Attempt> {
    const envelope = await this.transport.readEnvelope(response, { action: null, surface: this.transport.surface });
    if (envelope.ok) return { kind: "again", waitMs: 0 };
    const { code, message, retryable, retryAfterMs } = envelope.error;
    if (retryable || response.status >= 500 || response.status === 429) return { kind: "again", waitMs: retryAfterMs ?? 0 };
    return { kind: "refused", code, message };
  }

  #watchPage(stopped: AbortSignal): () => void {
    let cancel: () => void = () => undefined;
    const rest = () => {
      this.#resting = this.environment.hidden() && !stopped.aborted;
      if (this.#resting) this.#connection?.abort();
    };
    const look = () => {
      cancel();
      if (this.environment.hidden()) {
        cancel = this.environment.after(HIDDEN_MS_MAX, rest);
        return;
      }
      this.#resting = false;
      this.#attempts = 0;
      this.#wake();
    };
    const unsee = this.environment.onVisibility(look);
    const offline = this.environment.onOnline(() => this.#wake());
    look();
    return () => {
      cancel();
      unsee();
      offline();
      this.#resting = false;
    };
  }
}
