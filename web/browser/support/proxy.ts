// Stands between the page and the hub, at an address of its own: it can cut every connection, and it can let through only some of a
// run's events, or others in their place. What it lets through are the hub's own bytes.
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Event } from "./api.ts";
import { Pace } from "./pace.ts";

/** What becomes of an event of a run: itself, another, or nothing. */
export type Rewrite = (event: Event) => Event | undefined;

const STREAM = /^\/api\/v1\/runs\/([^/]+)\/stream/;
/** Where a page asks for events that it misses, and how many there are. */
export const EVENTS = "/api/v1/actions/run_events/invoke";
const RUN = "/api/v1/actions/run_show/invoke";

export class Proxy {
  /** How often each path was asked for, without its query. */
  readonly asked = new Map<string, number>();
  readonly #target: () => number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #rewrites = new Map<string, Rewrite>();
  readonly #paces = new Map<string, Pace>();
  readonly #stored = new Map<string, number>();
  #open = true;

  private constructor(target: () => number) {
    this.#target = target;
    this.#server = createServer((incoming, answer) => this.#forward(incoming, answer));
    this.#server.on("connection", (socket) => {
      if (!this.#open) return void socket.destroy();
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  /** A proxy to what listens at that port of this machine. */
  static async start(target: () => number): Promise<Proxy> {
    const proxy = new Proxy(target);
    await new Promise<void>((done) => proxy.#server.listen(0, "127.0.0.1", done));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How often a run's stream was opened through here. */
  streams(run: string): number {
    return this.asked.get(`/api/v1/runs/${run}/stream`) ?? 0;
  }

  /** Ends every connection, and takes no further one until `mend`. */
  cut(): void {
    this.#open = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#open = true;
  }

  /** Lets a run's events through as this says. */
  rewrite(run: string, how: Rewrite): void {
    this.#rewrites.set(run, how);
  }

  /** Says that a run has so many events. */
  claim(run: string, stored: number): void {
    this.#stored.set(run, stored);
  }

  /** Lets a run's events through up to this one; the stream then stays open and says nothing. */
  holdAt(run: string, sequence: number): void {
    this.rewrite(run, (event) => (event.sequence <= sequence ? event : undefined));
  }

  /** Lets a run's events through so many a second, as if they happened now. */
  pace(run: string, eventsASecond: number): Pace {
    const pace = new Pace(eventsASecond);
    this.#paces.set(run, pace);
    return pace;
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((done) => this.#server.close(() => done()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const url = incoming.url ?? "/";
    const [path = url] = url.split("?");
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    const port = this.#target();
    const own = `http://127.0.0.1:${port}`;
    const headers = { ...incoming.headers, host: `127.0.0.1:${port}` };
    if (headers.origin !== undefined) headers.origin = own;
    delete headers.referer;
    delete headers["accept-encoding"];
    const outgoing = request({ port, host: "127.0.0.1", method: incoming.method, path: url, headers, agent: false }, (from) => {
      const run = STREAM.exec(path)?.[1] ?? "";
      const [how, pace] = [this.#rewrites.get(run), this.#paces.get(run)];
      if (path === EVENTS && this.#rewrites.size > 0) {
        rewriteAnswer(from, answer, (data) => {
          const all: Event[] = data.events;
          data.events = all.map((event) => (this.#rewrites.get(event.runId) ?? same)(event)).filter((event) => event !== undefined);
        });
      } else if (path === RUN && this.#stored.size > 0) {
        rewriteAnswer(from, answer, ({ run }) => {
          run.lastSequence = this.#stored.get(run.id) ?? run.lastSequence;
        });
      } else {
        answer.writeHead(from.statusCode ?? 502, from.headers);
        if (from.statusCode === 200 && how !== undefined) rewriteStream(from, answer, how);
        else if (from.statusCode === 200 && pace !== undefined) pace.stream(from, answer);
        else from.pipe(answer);
      }
      from.on("error", () => answer.destroy());
    });
    outgoing.on("error", () => answer.destroy());
    answer.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  }
}

const same: Rewrite = (event) => event;

function rewriteStream(from: IncomingMessage, answer: ServerResponse, how: Rewrite): void {
  let text = "";
  let held = false;
  from.setEncoding("utf8");
  from.on("data", (chunk: string) => {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data === undefined) {
        answer.write(`${block}\n\n`);
        continue;
      }
      const event = how(JSON.parse(data));
      if (event === undefined) held = true;
      else answer.write(`id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
  });
  // A stream of which something was held back is still open, as far as the page can tell.
  from.on("end", () => (held ? undefined : answer.end()));
}

function rewriteAnswer(from: IncomingMessage, answer: ServerResponse, how: (data: any) => void): void {
  let text = "";
  from.setEncoding("utf8");
  from.on("data", (chunk: string) => (text += chunk));
  from.on("end", () => {
    const envelope = JSON.parse(text);
    if (envelope.ok === true) how(envelope.data);
    answer.writeHead(from.statusCode ?? 502, { "content-type": "application/json" }).end(JSON.stringify(envelope));
  });
}
