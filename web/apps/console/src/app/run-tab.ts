// Which part of a run the address names.
import { useRouterState } from "@tanstack/react-router";

/** The parts of a run's page. */
export const RUN_TABS = ["timeline", "diff", "artifacts", "transcript", "audit"] as const;
/** One of them. */
export type RunTab = (typeof RUN_TABS)[number];

/** The part in an address such as `/runs/run_…/artifacts/art_…`, and the artifact where one is named. */
export function runTabOf(pathname: string): { tab: RunTab; artifact?: string } {
  const [, , , part = "", artifact] = pathname.split("/");
  const tab = RUN_TABS.find((name) => name === part) ?? "timeline";
  return tab === "artifacts" && artifact ? { tab, artifact: decodeURIComponent(artifact) } : { tab };
}

/** The part of the run that is shown. */
export function useRunTab(): { tab: RunTab; artifact?: string } {
  return runTabOf(useRouterState({ select: (state) => state.location.pathname }));
}
