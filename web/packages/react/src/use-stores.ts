// What is kept outside React, in a component.

import {
  ClientError,
  type ActionTypes,
  type ApprovalsSnapshot,
  type Client,
  type DataSnapshot,
  type HubSnapshot,
  type InputOf,
  type Manifest,
  type NameOf,
  type OutputOf,
  type RunFilter,
  type RunSnapshot,
  type RunsSnapshot,
  type Store,
} from "@runyard/client";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useClient, type RegisteredActions } from "./provider.js";

function useStore<S>(store: Store<S>): S {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

/** A run, followed while the component is there. */
export function useRun(id: string): RunSnapshot {
  const client = useClient();
  return useStore(useMemo(() => client.run(id), [client, id]));
}

/** A list of runs, and what can be done with it. */
export type RunsHandle = RunsSnapshot & { loadMore(): Promise<void>; refresh(): Promise<void> };

/** The runs that match, kept current. */
export function useRuns(filter: RunFilter = {}): RunsHandle {
  const client = useClient();
  const key = JSON.stringify(filter);
  // A filter is a new object each time, and the same one by what it says.
  const store = useMemo(() => client.runs(readFilter(key)), [client, key]);
  const snapshot = useStore(store);
  return useMemo(() => ({ ...snapshot, loadMore: store.loadMore, refresh: store.refresh }), [snapshot, store]);
}

function readFilter(key: string): RunFilter {
  const filter: RunFilter = JSON.parse(key);
  return filter;
}

/** What waits for a person, over all runs. */
export function useApprovals(): ApprovalsSnapshot & { refresh(): Promise<void> } {
  const store = useClient().approvals();
  const snapshot = useStore(store);
  return useMemo(() => ({ ...snapshot, refresh: store.refresh }), [snapshot, store]);
}

/** An answer, and how to ask again. */
export type DataHandle<T> = DataSnapshot<T> & { refresh(): Promise<void> };

/** The answer of an action that only reads; with null as input nothing is asked. What a hub says of itself is kept current. */
export function useData<
  Actions extends ActionTypes<Actions> = RegisteredActions,
  Name extends NameOf<Actions> = NameOf<Actions>,
>(name: Name, input: InputOf<Actions, Name> | null): DataHandle<OutputOf<Actions, Name>> {
  const client = ofActions<Actions>(useClient());
  const key = JSON.stringify(input);
  // An input is a new object each time, and the same one by what it says.
  const store = useMemo(() => (input === null ? null : client.data(name, input).follow(name, client.hub())), [client, name, key]);
  const snapshot = useStore<DataSnapshot<OutputOf<Actions, Name>>>(store ?? NOTHING_ASKED);
  return useMemo(() => ({ ...snapshot, refresh: store?.refresh ?? nothing }), [snapshot, store]);
}

const NOTHING: DataSnapshot<never> = { data: undefined, error: null, loading: false };
const nothing = () => Promise.resolve();
const NOTHING_ASKED: Store<DataSnapshot<never>> = { get: () => NOTHING, subscribe: () => () => undefined };

function ofActions<Actions extends ActionTypes<Actions>>(client: unknown): Client<Actions> {
  return client as Client<Actions>;
}

/** What can be called. */
export function useActions(): DataHandle<Manifest> {
  const store = useClient().actions();
  const snapshot = useStore(store);
  return useMemo(() => ({ ...snapshot, refresh: store.refresh }), [snapshot, store]);
}

/** The hub as a component sees it. */
export type HubHandle = HubSnapshot & { can(permission: string): boolean; retry(): void };

/** The connection to the hub, and who is logged in with what permissions. */
export function useHub(): HubHandle {
  const store = useClient().hub();
  const snapshot = useStore(store);
  return useMemo(() => {
    const can = (permission: string) => snapshot.permissions.includes("*") || snapshot.permissions.includes(permission);
    return { ...snapshot, can, retry: store.retry };
  }, [snapshot, store]);
}

/** A file that an artifact holds, once somebody wants it. */
export interface DownloadHandle {
  status: "idle" | "running" | "ok" | "error";
  blob: Blob | null;
  error: { code: string; message: string } | null;
  /** Reads it; gives null where it failed, which `error` tells. */
  download(): Promise<Blob | null>;
}

type Downloaded = Omit<DownloadHandle, "download">;

const NOT_ASKED: Downloaded = { status: "idle", blob: null, error: null };

/** What an artifact holds. */
export function useDownload(runId: string, artifactId: string): DownloadHandle {
  const client = useClient();
  const [state, setState] = useState<Downloaded>(NOT_ASKED);
  const current = useRef<AbortController | null>(null);
  useEffect(() => {
    setState(NOT_ASKED);
    return () => current.current?.abort();
  }, [client, runId, artifactId]);
  const download = useCallback(async () => {
    current.current?.abort();
    const abort = new AbortController();
    current.current = abort;
    setState({ status: "running", blob: null, error: null });
    try {
      const blob = await client.download(runId, artifactId, { signal: abort.signal });
      if (!abort.signal.aborted) setState({ status: "ok", blob, error: null });
      return blob;
    } catch (error) {
      const code = error instanceof ClientError ? error.code : "CONNECTION_FAILED";
      const message = error instanceof Error ? error.message : String(error);
      if (!abort.signal.aborted) setState({ status: "error", blob: null, error: { code, message } });
      return null;
    }
  }, [client, runId, artifactId]);
  return useMemo(() => ({ ...state, download }), [state, download]);
}
