// Whether what a run applied was taken back since: its own log has ended and cannot say it, but a later run's can.
import { useRuns, type Failing, type RunsHandle, type RunSummary, type RunView } from "@runyard/react";
import { useEffect, useSyncExternalStore } from "react";
import { freshKey } from "../approvals/sending";
import { isEnded } from "./lifecycle";
import { takesBack } from "./words";

/** The run that takes back what this one applied, and whether it has done so. Before the later runs are read nobody knows. */
export type TakenBack = { kind: "no" } | { kind: "asked" | "done"; by: string } | { kind: "unknown"; error: Failing | null };

/** A list of runs, as far as it was read. */
export interface Listed {
  runs: readonly Pick<RunSummary, "id" | "state" | "task">[];
  /** Where the part begins that was not read; null where all was. */
  next: string | null;
  loading: boolean;
  error: Failing | null;
}

/** Looks for a run that takes back what this one applied; `begun` is one that was started here and may not be listed yet. */
export function takenBackBy(id: string, { runs, next, loading, error }: Listed, begun: string | null): TakenBack {
  const undoing = runs.filter((one) => takesBack(one.task, id));
  const done = undoing.find((one) => one.state === "completed");
  if (done !== undefined) return { kind: "done", by: done.id };
  const asked = undoing.find((one) => !isEnded(one.state));
  if (asked !== undefined) return { kind: "asked", by: asked.id };
  if (begun !== null && undoing.every((one) => one.id !== begun)) return { kind: "asked", by: begun };
  return error !== null || loading || next !== null ? { kind: "unknown", error } : { kind: "no" };
}

/** The runs that name this one and were made after it. */
export function useLaterRuns(id: string, { createdAt }: Pick<RunView, "createdAt">): RunsHandle {
  return useRuns({ text: id, ...(createdAt !== null && { since: createdAt }) });
}

/** Looks for a later run that takes back what this one applied. */
export function useTakenBack(id: string, view: Pick<RunView, "createdAt" | "review">): TakenBack {
  const listed = useLaterRuns(id, view);
  const begun = useSyncExternalStore(undos.subscribe, () => undos.begun(id));
  const taken = takenBackBy(id, listed, begun);
  const { next, loading, error, loadMore } = listed;
  // Of what was never applied nobody wants to know it.
  const goOn = view.review?.status === "applied" && taken.kind === "unknown" && next !== null && !loading && error === null;
  useEffect(() => {
    if (goOn) void loadMore();
  }, [goOn, loadMore]);
  return taken;
}

/** The undos that were started on this page: one undo is one call, however often it is said, until it has led to a run. */
export class Undos {
  readonly #tries = new Map<string, { key: string; by: string | null }>();
  readonly #listeners = new Set<() => void>();

  /** The key with which taking back what this run applied is said. */
  key(id: string): string {
    const last = this.#tries.get(id);
    if (last?.by === null) return last.key;
    const key = freshKey();
    this.#tries.set(id, { key, by: null });
    return key;
  }

  /** It led to this run. */
  led(id: string, by: string): void {
    this.#tries.set(id, { key: this.key(id), by });
    for (const listener of this.#listeners) listener();
  }

  /** The run that the last one led to. */
  begun(id: string): string | null {
    return this.#tries.get(id)?.by ?? null;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** The undos of this page. */
export const undos = new Undos();
