// All runs: what needs somebody, what works, what ended.
import { useRouter, useSearch } from "@tanstack/react-router";
import { CONNECTION_FAILED, useRuns, type RunState, type RunSummary } from "@runyard/react";
import { lazy, Suspense, useMemo } from "react";
import { t, useLanguage } from "../../i18n";
import { ErrorNote, Kbd, LinkButton, LiveBadge, PageHead } from "../../ui";
import { useCounts } from "./counts";
import { inView, matches, queryOf, readFilter, type RunsSearch } from "./filter";
import { FirstRun, HubAway, NoMatch } from "./none";
import { RunsTable, SkeletonTable } from "./table";

// The menus come right after the list: it can be read without them. Their row has its height before.
const Filters = lazy(() => import("./filters").then(({ Filters }) => ({ default: Filters })));
const NEEDING: readonly RunState[] = ["needs_approval"];

/** The list of runs. */
export function RunsPage() {
  useLanguage();
  const search: RunsSearch = useSearch({ from: "/runs" });
  const filter = useMemo(() => readFilter(search), [search]);
  const query = useMemo(() => queryOf(filter, Date.now()), [filter]);
  const all = useRuns({});
  const needing = useRuns({ state: NEEDING });
  const found = useRuns(query ?? {});
  // Time only decides here at the edge of a filter: the moment in which the list is drawn is near enough.
  const now = Date.now();
  const passes = (run: RunSummary) => matches(run, filter, now);
  const { counts, more } = useCounts(all, needing, passes);
  // Until the answer to new filters is there, what is known already is shown by them.
  const known = found.loading && found.runs.length === 0 ? all.runs : found.runs;
  const shown = query === undefined ? [] : known.filter((run) => inView(run, filter.view) && passes(run));

  return (
    <>
      <PageHead
        title={t("runs.title")}
        count={all.loading ? "" : t(counts.needs === 0 ? "runs.shown" : "runs.shownNeeds", { shown: shown.length, needs: counts.needs })}
        end={
          <>
            <LiveBadge link={found.link} />
            <LinkButton kind="ink" icon="plus" to="/runs/new">
              {t("common.newRun")} <Kbd>C</Kbd>
            </LinkButton>
          </>
        }
      />
      <Suspense fallback={<div className="filters" />}>
        <Filters search={search} filter={filter} runs={all.runs} counts={counts} more={more} />
      </Suspense>
      {found.error && !isAway(found) && <ErrorNote error={found.error} />}
      <Listing all={all} found={found} shown={shown} search={search} />
    </>
  );
}

type List = ReturnType<typeof useRuns>;

/** The hub does not answer: the connection says so, and when it is tried again. */
function isAway({ link, error }: List): boolean {
  return link.kind === "waiting" || error?.code === CONNECTION_FAILED;
}

function Listing({ all, found, shown, search }: { all: List; found: List; shown: readonly RunSummary[]; search: RunsSearch }) {
  const router = useRouter();
  const more = found.next === null ? undefined : () => void found.loadMore();
  if (shown.length > 0) return <RunsTable runs={shown} onMore={more} loading={found.loading} />;
  if (isAway(found)) return <HubAway />;
  if (found.loading || all.loading) return <SkeletonTable />;
  if (found.error) return null;
  if (all.runs.length === 0) return <FirstRun />;
  const clear = () => void router.navigate({ to: "/runs", search: {} });
  return <NoMatch search={search} outside={all.runs} searched={found.runs.length} onClear={clear} onOlder={more} />;
}
