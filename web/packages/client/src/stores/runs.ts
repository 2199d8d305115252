// A list of runs, newest first, kept current.

import type { Environment } from "../environment.js";
import { isRecord, type Failing } from "../envelope.js";
import type { RunView as RunSummary } from "../generated/actions.js";
import type { RunState } from "../generated/lifecycle.js";
import { CANCELLED, type Transport } from "../transport.js";
import type { Link } from "../view.js";
import { isState, type Change, type ChangedRun, type HubStore } from "./hub.js";
import { Keeper, type Followed } from "./keeper.js";
import { SharedStore } from "./shared.js";

/** So many runs are shown at first, and so many more each time. */
export const PAGE_RUNS = 50;
/** So many are asked for at once at most. */
const PAGE_RUNS_MAX = 500;
/** So many pages are looked through for runs that match. */
const PAGES_MAX = 10;
/** Up to so many runs that changed are read one by one. */
const SINGLE_READS_MAX = 6;
/** Of so many runs it is remembered how far the hub said they were. */
const HEARD_MAX = 2_000;

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
  /** What the hub last said of a run: an answer that was on its way meanwhile may be older. */
  readonly #heard = new Map<string, ChangedRun>();
  readonly #states: readonly RunState[];
  #all = true;
  /** The oldest run that was looked at; null where all were. */
  #reached: string | null = null;
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
    this.#reached = found.next === null ? null : found.reached;
    const known = new Set(this.get().runs.map((run) => run.id));
    const runs = [...this.get().runs, ...this.#newest(found.runs).filter((run) => !known.has(run.id))];
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
    if (this.#heard.size > HEARD_MAX) this.#heard.clear();
    for (const run of change.runs) {
      this.#changed.add(run.id);
      this.#heard.set(run.id, run);
    }
    if (change.runs.length > 0) this.set({ ...this.get(), runs: this.#newest(this.get().runs) });
    // What is being read by now is not wanted once more.
    if (this.#all || this.#changed.size > 0) this.#keeper.want();
  }

  /** Runs as they were read; where the hub has said more of one since, as it said, and that one is read again. Only those that match. */
  #newest(read: readonly RunSummary[]): RunSummary[] {
    const newest = read.map((run) => {
      const heard = this.#heard.get(run.id);
      if (heard === undefined || heard.lastSequence <= run.lastSequence) return run;
      this.#changed.add(run.id);
      return { ...run, state: heard.state, lastSequence: heard.lastSequence };
    });
    if (this.#changed.size > 0) this.#keeper.want();
    return newest.filter((run) => this.#matches(run));
  }

  async #read(signal: AbortSignal): Promise<Followed> {
    const known = new Set(this.get().runs.map((run) => run.id));
    // Ids begin with the time: what is older than all that was looked at is not in this part of the list, whatever it became.
    const changed = [...this.#changed].filter((id) => known.has(id) || this.#reached === null || id > this.#reached);
    const single = !this.#all && changed.length <= SINGLE_READS_MAX && changed.every((id) => known.has(id));
    this.#changed.clear();
    this.#all = false;
    const read = single ? await Promise.all(changed.map((id) => this.#readOne(id, signal))) : [await this.#readHead(signal)];
    if (!read.includes(false)) return "rest";
    // Whichever it was, the list itself says it.
    this.#all = true;
    return this.hub.afterFailure;
  }

  /** Reads one run again; false where it failed, which is told. */
  async #readOne(id: string, signal: AbortSignal): Promise<boolean> {
    const answer = await this.transport.call("run_show", { id }, { signal });
    if (!answer.ok) return this.#failed(answer.error);
    const run = isRecord(answer.data) ? answer.data["run"] : null;
    if (!isRun(run)) return true;
    const [now] = this.#newest([run]);
    const runs = this.get().runs.flatMap((one) => (one.id !== id ? [one] : now === undefined ? [] : [now]));
    this.set({ ...this.get(), runs });
    return true;
  }

  #failed(error: Failing): false {
    if (error.code !== CANCELLED) this.set({ ...this.get(), error, loading: false });
    return false;
  }

  /** Reads the list from its beginning as far as it is shown; false where it failed, which is told. */
  async #readHead(signal: AbortSignal): Promise<boolean> {
    const shown = this.get().runs.length;
    const found = await this.#pages(null, Math.max(PAGE_RUNS, Math.min(shown, PAGE_RUNS_MAX)), signal);
    if (found === null) return false;
    const before = this.get().runs;
    const { oldest } = found;
    const ids = new Set(found.runs.map((run) => run.id));
    const rest = oldest === null || found.next === null ? [] : before.filter((run) => run.createdAt < oldest && !ids.has(run.id));
    const next = rest.length > 0 ? this.get().next : found.next;
    if (rest.length === 0) this.#reached = found.next === null ? null : found.reached;
    this.set({ ...this.get(), runs: this.#newest([...found.runs, ...rest]), next, loading: false, error: null });
    return true;
  }

  /** Looks through pages until there are enough that match; null where it failed, which is told. */
  async #pages(begin: string | null, wanted: number, signal: AbortSignal): Promise<Found | null> {
    const runs: RunSummary[] = [];
    let next = begin;
    let [oldest, reached]: [string | null, string | null] = [null, null];
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const limit = this.#isNarrow() ? PAGE_RUNS_MAX : wanted;
      const state = this.#states.length === 1 ? { state: this.#states[0] } : {};
      const input = { limit, ...state, ...(next === null ? {} : { before: next }) };
      const answer = await this.transport.call("run_list", input, { signal });
      if (!answer.ok) {
        this.#failed(answer.error);
        return null;
      }
      const listed = isRecord(answer.data) && Array.isArray(answer.data["runs"]) ? answer.data["runs"].filter(isRun) : [];
      runs.push(...listed.filter((run) => this.#matches(run)));
      oldest = listed.at(-1)?.createdAt ?? oldest;
      reached = listed.at(-1)?.id ?? reached;
      next = isRecord(answer.data) && typeof answer.data["next"] === "string" ? answer.data["next"] : null;
      const past = this.filter.since !== undefined && oldest !== null && oldest < this.filter.since;
      if (past) next = null;
      if (next === null || runs.length >= wanted) break;
    }
    return { runs, next, oldest, reached };
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
  /** Which run that is. */
  reached: string | null;
}

function taskText(run: RunSummary): string {
  return typeof run.task === "string" ? run.task : run.task.action;
}

function isRun(value: unknown): value is RunSummary {
  return isRecord(value) && typeof value["id"] === "string" && isState(value["state"]) && isRecord(value["workspace"]);
}
