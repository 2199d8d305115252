// One run, from its first event to its last.

import type { Environment } from "../environment.js";
import { isEvent } from "../fold/known.js";
import { RunReader } from "../fold/reader.js";
import { isRecord } from "../envelope.js";
import { readJson } from "../json.js";
import { EventStream } from "../stream.js";
import { CONNECTION_FAILED, type Transport } from "../transport.js";
import type { Link, RunEvent, RunSnapshot } from "../view.js";
import { FlushQueue } from "./queue.js";
import { SharedStore } from "./shared.js";

/** So many events are asked for at a time where some are missing. */
const PAGE_EVENTS_MAX = 500;

/** A run that is watched, or read. */
export class RunStore extends SharedStore<RunSnapshot> {
  readonly #reader = new RunReader();
  readonly #stream: EventStream;
  readonly #queue: FlushQueue<RunEvent>;
  readonly #words = new Map<string, string>();
  #link: Link = { kind: "connecting" };
  #filling: AbortController | null = null;

  constructor(
    environment: Environment,
    private readonly transport: Transport,
    readonly id: string,
  ) {
    const link: Link = { kind: "connecting" };
    super(environment, { id, link, rev: 0, view: new RunReader().view() });
    this.#queue = new FlushQueue(environment, (events) => this.#take(events));
    this.#stream = new EventStream(transport, environment, {
      path: `/api/v1/runs/${encodeURIComponent(id)}/stream`,
      lastId: () => this.#lastId(),
      onMessage: ({ data }) => this.#hear(data),
      onLink: (changed) => this.#relink(changed),
      isOver: () => {
        this.#queue.flush();
        return this.#reader.isOver;
      },
      lastAt: () => this.#reader.view().lastAt,
    });
  }

  protected start(): void {
    // What has ended says nothing new.
    if (this.#link.kind !== "ended") this.#stream.start();
  }

  protected stop(): void {
    this.#stream.stop();
    this.#filling?.abort();
    this.#queue.flush();
    this.#reader.forget();
  }

  /** Asks again at once, where the connection is broken or was refused. */
  readonly retry = (): void => {
    if (this.isStarted && this.#link.kind !== "ended") this.#stream.retry();
  };

  #lastId(): string | null {
    this.#queue.flush();
    return this.#reader.lastSequence === 0 ? null : String(this.#reader.lastSequence);
  }

  #relink(link: Link): void {
    if (link.kind === "ended") this.#queue.flush();
    this.#link = link;
    this.#tell();
  }

  #hear(data: string): void {
    try {
      const event = readJson(data);
      if (isEvent(event)) this.#queue.push(this.#compact(event));
    } catch {
      // What cannot be read is missing, and is asked for again.
    }
  }

  /** The same few words stand in every event: they are kept once. */
  #compact(event: RunEvent): RunEvent {
    event.type = this.#word(event.type);
    event.runId = event.runId === this.id ? this.id : event.runId;
    if (event.sessionId !== undefined) event.sessionId = this.#word(event.sessionId);
    if (event.agentId !== undefined) event.agentId = this.#word(event.agentId);
    return event;
  }

  #word(word: string): string {
    const known = this.#words.get(word);
    if (known === undefined) this.#words.set(word, word);
    return known ?? word;
  }

  #take(events: readonly RunEvent[]): void {
    for (const event of events) this.#reader.push(event);
    this.#tell();
    if (this.#reader.gap() !== null && this.#filling === null) void this.#fill();
  }

  #tell(): void {
    const { id, rev } = this.get();
    this.set({ id, link: this.#link, rev: rev + 1, view: this.#reader.view() });
  }

  /** Asks for events that are missing. What the hub does not have either is shown as missing. */
  async #fill(): Promise<void> {
    const filling = new AbortController();
    this.#filling = filling;
    for (let gap = this.#reader.gap(); gap !== null; gap = this.#reader.gap()) {
      const limit = Math.min(PAGE_EVENTS_MAX, gap.to - gap.from + 1);
      const input = { id: this.id, after: gap.from - 1, limit };
      const answer = await this.transport.call("run_events", input, { signal: filling.signal });
      if (filling.signal.aborted) break;
      if (!answer.ok && (answer.error.code === CONNECTION_FAILED || answer.error.retryable)) {
        // The stream goes on after the last event that was taken, so it brings them.
        this.#reader.forget();
        this.#stream.breakOff();
        break;
      }
      for (const event of answer.ok ? listed(answer.data) : []) this.#reader.push(this.#compact(event));
      if (this.#reader.gap()?.from === gap.from) this.#reader.giveUp();
      this.#tell();
    }
    this.#filling = null;
  }
}

function listed(data: unknown): RunEvent[] {
  return isRecord(data) && Array.isArray(data["events"]) ? data["events"].filter(isEvent) : [];
}
