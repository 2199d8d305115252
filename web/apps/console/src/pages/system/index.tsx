// Agents, backends, edges, workspaces and sessions.
export { AgentsPage } from "./agents";
export { EdgesPage } from "./edges";
