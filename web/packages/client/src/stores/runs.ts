// A list of runs, newest first, kept current.

import type { Environment } from "../environment.js";
import { isRecord, type Failing } from "../envelope.js";
import type { RunView as RunSummary } from "../generated/actions.js";
import type { RunState } from "../generated/lifecycle.js";
import { CANCELLED, type Transport } from "../transport.js";
import type { Link } from "../view.js";
import { isState, type Change, type HubStore } from "./hub.js";
import { Keeper } from "./keeper.js";
import { SharedStore } from "./shared.js";

/** So many runs are shown at first, and so many more each time. */
export const PAGE_RUNS = 50;
/** So many are asked for at once at most. */
const PAGE_RUNS_MAX = 500;
/** So many pages are looked through for runs that match. */
const PAGES_MAX = 10;
/** Up to so many runs that changed are read one by one. */
const SINGLE_READS_MAX = 6;

/** Which runs are listed. What the hub cannot filter is filtered here. */
export interface RunFilter {
  state?: RunState | readonly RunState[];
  /** A workspace's id or label. */
  workspace?: string;
  /** An agent profile. */
  agent?: string;
  /** A text in the task or the id. */
  text?: string;
  /** Only runs that were made at or after this time. */
  since?: string;
}

/** A list of runs, as far as it was read. */
export interface RunsSnapshot {
  runs: readonly RunSummary[];
  /** Where the next page begins; null on the last. */
  next: string | null;
  loading: boolean;
  error: Failing | null;
  link: Link;
}

/** A run as lists show it. */
export type { RunSummary };

/** The runs that match a filter. */
export class RunsStore extends SharedStore<RunsSnapshot> {
  readonly #keeper: Keeper;
  readonly #changed = new Set<string>();
  readonly #states: readonly RunState[];
  #all = true;
  #more: AbortController | null = null;
  #unwatch: (() => void)[] = [];

  constructor(
    environment: Environment,
    private readonly transport: Transport,
    private readonly hub: HubStore,
    private readonly filter: RunFilter,
  ) {
    super(environment, { runs: [], next: null, loading: true, error: null, link: hub.get().link });
    this.#states = filter.state === undefined ? [] : isState(filter.state) ? [filter.state] : filter.state;
    this.#keeper = new Keeper(environment, (signal) => this.#read(signal));
  }

  /** Reads the list again. */
  readonly refresh = (): Promise<void> => {
    this.#all = true;
    return this.#keeper.now();
  };

  /** Reads the next page. */
  readonly loadMore = async (): Promise<void> => {
    const { next } = this.get();
    if (next === null || this.#more !== null) return;
    const more = new AbortController();
    this.#more = more;
    this.set({ ...this.get(), loading: true });
    const found = await this.#pages(next, PAGE_RUNS, more.signal);
    this.#more = null;
    if (found === null) return;
    const known = new Set(this.get().runs.map((run) => run.id));
    const runs = [...this.get().runs, ...found.runs.filter((run) => !known.has(run.id))];
    this.set({ ...this.get(), runs, next: found.next, loading: false, error: null });
  };

  protected start(): void {
    const relink = () => this.set({ ...this.get(), link: this.hub.get().link });
    this.#unwatch = [this.hub.onChange((change) => this.#hear(change)), this.hub.subscribe(relink)];
    this.#all = true;
    this.#keeper.want();
  }

  protected stop(): void {
    for (const unwatch of this.#unwatch) unwatch();
    this.#unwatch = [];
    this.#more?.abort();
    this.#keeper.stop();
  }

  #hear(change: Change): void {
    if (!change.all && change.runs.length === 0) return;
    this.#all ||= change.all;
    for (const { id } of change.runs) this.#changed.add(id);
    const states = new Map(change.runs.map((run) => [run.id, run]));
    const patched = this.get().runs.map((run) => {
      const now = states.get(run.id);
      if (now === undefined || now.lastSequence <= run.lastSequence) return run;
      return { ...run, state: now.state, lastSequence: now.lastSequence };
    });
    if (states.size > 0) this.set({ ...this.get(), runs: patched.filter((run) => this.#matches(run)) });
    this.#keeper.want();
  }

  async #read(signal: AbortSignal): Promise<void> {
    const changed = [...this.#changed];
    const known = new Set(this.get().runs.map((run) => run.id));
    const single = !this.#all && changed.length <= SINGLE_READS_MAX && changed.every((id) => known.has(id));
    this.#changed.clear();
    this.#all = false;
    if (single) await Promise.all(changed.map((id) => this.#readOne(id, signal)));
    else await this.#readHead(signal);
  }

  async #readOne(id: string, signal: AbortSignal): Promise<void> {
    const answer = await this.transport.call("run_show", { id }, { signal });
    const run = answer.ok && isRecord(answer.data) ? answer.data["run"] : null;
    if (!isRun(run)) return;
    const runs = this.get().runs.flatMap((one) => (one.id !== id ? [one] : this.#matches(run) ? [run] : []));
    this.set({ ...this.get(), runs });
  }

  async #readHead(signal: AbortSignal): Promise<void> {
    const before = this.get().runs;
    const found = await this.#pages(null, Math.max(PAGE_RUNS, Math.min(before.length, PAGE_RUNS_MAX)), signal);
    if (found === null) return;
    const { oldest } = found;
    const ids = new Set(found.runs.map((run) => run.id));
    const rest = oldest === null || found.next === null ? [] : before.filter((run) => run.createdAt < oldest && !ids.has(run.id));
    const next = rest.length > 0 ? this.get().next : found.next;
    this.set({ ...this.get(), runs: [...found.runs, ...rest], next, loading: false, error: null });
  }

  /** Looks through pages until there are enough that match; null where it failed, which is told. */
  async #pages(begin: string | null, wanted: number, signal: AbortSignal): Promise<Found | null> {
    const runs: RunSummary[] = [];
    let next = begin;
    let oldest: string | null = null;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const limit = this.#isNarrow() ? PAGE_RUNS_MAX : wanted;
      const state = this.#states.length === 1 ? { state: this.#states[0] } : {};
      const input = { limit, ...state, ...(next === null ? {} : { before: next }) };
      const answer = await this.transport.call("run_list", input, { signal });
      if (!answer.ok) {
        if (answer.error.code !== CANCELLED) this.set({ ...this.get(), error: answer.error, loading: false });
        return null;
      }
      const listed = isRecord(answer.data) && Array.isArray(answer.data["runs"]) ? answer.data["runs"].filter(isRun) : [];
      runs.push(...listed.filter((run) => this.#matches(run)));
      oldest = listed.at(-1)?.createdAt ?? oldest;
      next = isRecord(answer.data) && typeof answer.data["next"] === "string" ? answer.data["next"] : null;
      const past = this.filter.since !== undefined && oldest !== null && oldest < this.filter.since;
      if (past) next = null;
      if (next === null || runs.length >= wanted) break;
    }
    return { runs, next, oldest };
  }

  /** Whether there is something that the hub cannot filter. */
  #isNarrow(): boolean {
    const { workspace, agent, text } = this.filter;
    return Boolean(workspace) || Boolean(agent) || Boolean(text) || this.#states.length > 1;
  }

  #matches(run: RunSummary): boolean {
    const { workspace, agent, text, since } = this.filter;
    const words = text?.trim().toLowerCase();
    return (
      (this.#states.length === 0 || this.#states.includes(run.state)) &&
      (!workspace || run.workspace.id === workspace || run.workspace.label === workspace) &&
      (!agent || run.agentId === agent) &&
      (!since || run.createdAt >= since) &&
      (!words || run.id.includes(words) || taskText(run).toLowerCase().includes(words))
    );
  }
}

interface Found {
  runs: RunSummary[];
  next: string | null;
  /** When the oldest run that was looked at was made. */
  oldest: string | null;
}

function taskText(run: RunSummary): string {
  return typeof run.task === "string" ? run.task : run.task.action;
}

function isRun(value: unknown): value is RunSummary {
  return isRecord(value) && typeof value["id"] === "string" && isState(value["state"]) && isRecord(value["workspace"]);
}
