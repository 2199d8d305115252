// React hooks for Runyard. Everything of the client that a page needs is here, too.

export { RunyardProvider, useClient } from "./provider.js";
export type { Register, RegisteredActions, RunyardProviderProps } from "./provider.js";
export type { Confirm, ConfirmRequest, InvocationControls, InvocationState, InvokeOptions } from "./invocation.js";
export { useAction } from "./use-action.js";
export type { ActionHandle, UseActionOptions } from "./use-action.js";
export { useActions, useApprovals, useData, useDownload, useHub, useRun, useRuns } from "./use-stores.js";
export type { DataHandle, DownloadHandle, HubHandle, RunsHandle } from "./use-stores.js";
export * from "@runyard/client";
