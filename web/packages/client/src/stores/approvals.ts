// What waits for a person, over all runs.

import type { Environment } from "../environment.js";
import { isRecord, type Failing } from "../envelope.js";
import type { ApprovalView } from "../generated/actions.js";
import type { Request } from "../generated/events.js";
import { CANCELLED, type Transport } from "../transport.js";
import type { Link } from "../view.js";
import type { Change, HubStore } from "./hub.js";
import { Keeper, type Followed } from "./keeper.js";
import { SharedStore } from "./shared.js";

const PAGE_APPROVALS_MAX = 500;
const PAGES_MAX = 4;

/** An approval that is open. */
export type OpenApproval = Omit<ApprovalView, "request"> & { request: Request };

/** What waits for a person, oldest first, with what was snoozed. */
export interface ApprovalsSnapshot {
  approvals: readonly OpenApproval[];
  loading: boolean;
  error: Failing | null;
  link: Link;
}

/** The approvals that are open. */
export class ApprovalsStore extends SharedStore<ApprovalsSnapshot> {
  readonly #keeper: Keeper;
  #unwatch: (() => void)[] = [];
  /** How many the hub last said. */
  #counted: number | null = null;

  constructor(
    environment: Environment,
    private readonly transport: Transport,
    private readonly hub: HubStore,
  ) {
    super(environment, { approvals: [], loading: true, error: null, link: hub.get().link });
    this.#keeper = new Keeper(environment, (signal) => this.#read(signal));
  }

  /** Reads them again. */
  readonly refresh = (): Promise<void> => this.#keeper.now();

  protected start(): void {
    const relink = () => this.set({ ...this.get(), link: this.hub.get().link });
    this.#unwatch = [this.hub.onChange((change) => this.#hear(change)), this.hub.subscribe(relink)];
    this.#keeper.want();
  }

  protected stop(): void {
    for (const unwatch of this.#unwatch) unwatch();
    this.#unwatch = [];
    this.#keeper.stop();
  }

  #hear(change: Change): void {
    const counted = change.approvals !== null && change.approvals !== this.#counted;
    this.#counted = change.approvals ?? this.#counted;
    const waits = new Set(this.get().approvals.map((approval) => approval.runId));
    const waiting = change.runs.some((run) => run.state === "needs_approval" || waits.has(run.id));
    if (change.all || counted || waiting) this.#keeper.want();
  }

  async #read(signal: AbortSignal): Promise<Followed> {
    const found: OpenApproval[] = [];
    let after: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const input = { snoozed: true, limit: PAGE_APPROVALS_MAX, ...(after === undefined ? {} : { after }) };
      const answer = await this.transport.call("approval_list", input, { signal });
      if (!answer.ok) {
        if (answer.error.code !== CANCELLED) this.set({ ...this.get(), error: answer.error, loading: false });
        return this.hub.afterFailure;
      }
      const { data } = answer;
      if (isRecord(data) && Array.isArray(data["approvals"])) found.push(...data["approvals"].filter(isApproval));
      after = isRecord(data) && typeof data["next"] === "string" ? data["next"] : undefined;
      if (after === undefined) break;
    }
    this.set({ ...this.get(), approvals: kept(this.get().approvals, found), error: null, loading: false });
    return "rest";
  }
}

/** What did not change stays the same object. */
function kept(before: readonly OpenApproval[], found: OpenApproval[]): OpenApproval[] {
  const known = new Map(before.map((approval) => [approval.id, approval]));
  return found.map((approval) => {
    const same = known.get(approval.id);
    return same !== undefined && JSON.stringify(same) === JSON.stringify(approval) ? same : approval;
  });
}

function isApproval(value: unknown): value is OpenApproval {
  return isRecord(value) && typeof value["id"] === "string" && typeof value["runId"] === "string" && isRecord(value["request"]);
}
