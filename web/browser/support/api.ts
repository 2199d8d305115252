// Somebody with a token who speaks HTTP with the hub: starts runs, answers, and reads what is recorded.
import { type Hub, PATIENCE_MS } from "./hub.ts";

/** A run, as far as tests look at it. */
export interface Run {
  id: string;
  state: string;
  code?: string;
  message?: string;
  recovery?: string;
  failureKind?: string;
}

/** Something that a run asks. */
export interface Approval {
  id: string;
  runId: string;
  digest: string;
  title?: string;
  request: { kind: string; command?: string; path?: string };
}

/** An event of a run. */
export interface Event {
  id: string;
  runId: string;
  sequence: number;
  type: string;
  timestamp: string;
  payload: Record<string, unknown>;
}

interface Envelope<T> {
  ok: boolean;
  data: T;
  error?: { code: string; message: string };
}

type Body = Record<string, unknown>;

const PAUSE_MS = 20;
const PAGE_EVENTS = 500;

/** Asks again and again until there is an answer. */
export async function eventually<T>(what: string, ask: () => Promise<T | undefined | null | false>, patience = PATIENCE_MS): Promise<T> {
  const end = Date.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > end) throw new Error(`never happened: ${what}`);
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

export class Api {
  readonly #hub: Hub;
  readonly #token: string;

  constructor(hub: Hub, token: string) {
    this.#hub = hub;
    this.#token = token;
  }

  /** The status and the envelope, whatever they are. */
  async send<T>(method: string, path: string, body?: Body): Promise<{ status: number; envelope: Envelope<T> }> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(`${this.#hub.url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, envelope: (await answer.json()) as Envelope<T> };
  }

  async #data<T>(method: string, path: string, body?: Body): Promise<T> {
    const { envelope } = await this.send<T>(method, path, body);
    if (envelope.ok !== true) throw new Error(`${method} ${path}: ${JSON.stringify(envelope.error)}`);
    return envelope.data;
  }

  get<T>(path: string): Promise<T> {
    return this.#data("GET", path);
  }

  post<T>(path: string, body: Body = {}): Promise<T> {
    return this.#data("POST", path, body);
  }

  /** Another person with a role of their own. */
  async person(name: string, role: string): Promise<Api> {
    const made = await this.post<{ text: string }>("/tokens", { name, role });
    return new Api(this.#hub, made.text);
  }

  /** A one-time link for whoever this is. */
  async link(): Promise<string> {
    return (await this.post<{ url: string }>("/logins")).url;
  }

  async run(id: string): Promise<Run> {
    return (await this.get<{ run: Run }>(`/runs/${id}`)).run;
  }

  /** Waits until the run is in this state; another end than this one fails the test. */
  until(id: string, state: string): Promise<Run> {
    return eventually(`${id} is ${state}`, async () => {
      const run = await this.run(id);
      if (run.state === state) return run;
      if (["completed", "failed", "cancelled"].includes(run.state)) throw new Error(`${id} is ${run.state}, not ${state}: ${JSON.stringify(run)}`);
      return undefined;
    });
  }

  /** Waits for something that the run asks, other than these. */
  asked(id: string, ...before: string[]): Promise<Approval> {
    return eventually(`${id} asks`, async () => {
      const open = await this.open(id);
      return open.find((approval) => !before.includes(approval.id));
    });
  }

  /** What the run asks now. */
  async open(id: string): Promise<Approval[]> {
    return (await this.get<{ approvals: Approval[] }>(`/approvals?run=${id}`)).approvals;
  }

  resolve(approval: Approval, answer: Body): Promise<unknown> {
    return this.post(`/approvals/${approval.id}/resolve`, { digest: approval.digest, ...answer });
  }

  approve(approval: Approval): Promise<unknown> {
    return this.resolve(approval, { decision: "approve" });
  }

  /** Says yes to everything that the run asks, until it is at this end. */
  through(id: string, state = "completed"): Promise<Run> {
    return eventually(`${id} is ${state}`, async () => {
      const run = await this.run(id);
      if (run.state === state) return run;
      if (run.state === "needs_approval") {
        // One that was answered meanwhile is no failure of the test.
        for (const approval of await this.open(id)) await this.send("POST", `/approvals/${approval.id}/resolve`, { decision: "approve", digest: approval.digest });
      }
      return undefined;
    });
  }

  /** Speaks into a run's turn. */
  steer(id: string, text: string): Promise<unknown> {
    return this.post(`/runs/${id}/commands`, { kind: "steer", text });
  }

  /** All events of the run so far. */
  async events(id: string): Promise<Event[]> {
    const events: Event[] = [];
    for (;;) {
      const page = await this.get<{ events: Event[]; next?: number | null }>(`/runs/${id}/events?after=${events.length}&limit=${PAGE_EVENTS}`);
      events.push(...page.events);
      if (page.next === undefined || page.next === null || page.events.length === 0) return events;
    }
  }
}
