// A hub that does what a test says.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { RunEvent } from "../../src/index.js";

/** A request that came. */
export interface Came {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
  response: ServerResponse;
  /** Resolves when the caller is gone. */
  gone: Promise<void>;
}

type Answer = (came: Came) => void | Promise<void>;

/** A server whose answers are given by path; the first that matches counts. */
export class TestHub {
  readonly came: Came[] = [];
  readonly #server: Server;
  readonly #answers: { path: RegExp; answer: Answer }[] = [];
  readonly #waiting = new Set<() => void>();

  constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  /** Begins, and gives the address. */
  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? `http://127.0.0.1:${address.port}` : "";
  }

  /** Ends, with all connections. */
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Says how requests to a path are answered from now on. */
  on(path: RegExp, answer: Answer): void {
    this.#answers.unshift({ path, answer });
  }

  /** Waits for the request with this number to a path, counted from 1. */
  async request(path: RegExp, number = 1): Promise<Came> {
    for (;;) {
      const found = this.came.filter((came) => path.test(came.path))[number - 1];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** How many requests came to a path. */
  count(path: RegExp): number {
    return this.came.filter((came) => path.test(came.path)).length;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const gone = new Promise<void>((resolve) => response.on("close", () => resolve()));
    const body = Buffer.concat(pieces).toString();
    const came = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body, response, gone };
    this.came.push(came);
    for (const wake of [...this.#waiting]) wake();
    this.#waiting.clear();
    const found = this.#answers.find(({ path }) => path.test(came.path));
    if (found === undefined) answer(came, 404, failure("NOT_FOUND", "There is nothing here."));
    else await found.answer(came);
  }
}

/** Answers with JSON. */
export function answer({ response }: Came, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** An envelope of a call that went well. */
export function success(data: unknown): unknown {
  return {
    ok: true, data, artifacts: [], logs: [], meta: { action: "x", invocationId: "inv_1", surface: "react", durationMs: 1 },
  };
}

/** An envelope of one that did not. */
export function failure(code: string, message: string, more: object = {}): unknown {
  const error = { code, message, issues: [], retryable: false, ...more };
  return {
    ok: false, error, artifacts: [], logs: [], meta: { action: null, invocationId: "inv_1", surface: "react", durationMs: 1 },
  };
}

/** Begins a stream. */
export function stream({ response }: Came): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
}

/** An event as the hub writes it. */
export function frame(event: RunEvent): string {
  return `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The events after the one that a request names. */
export function after(came: Came, events: readonly RunEvent[]): RunEvent[] {
  const last = Number(came.headers["last-event-id"] ?? 0);
  return events.filter((event) => event.sequence > last);
}
