// What these pages read, by the names of the actions that give it.
import { useData, type HubActions } from "@runyard/react";

/** What an action answers. */
export type Answer<N extends keyof HubActions> = HubActions[N]["output"];

/** An agent profile. */
export type Agent = Answer<"agent_list">["agents"][number];
/** A backend profile. */
export type Backend = Answer<"backend_list">["backends"][number];
/** An edge. */
export type Edge = Answer<"edge_list">["edges"][number];
/** A workspace. */
export type Workspace = Answer<"workspace_list">["workspaces"][number];
/** A session. */
export type Session = Answer<"session_list">["sessions"][number];

export const useAgents = () => useData("agent_list", {});
export const useBackends = () => useData("backend_list", {});
export const useEdges = () => useData("edge_list", {});
export const useWorkspaces = () => useData("workspace_list", {});
export const useSessions = () => useData("session_list", { limit: 100 });
