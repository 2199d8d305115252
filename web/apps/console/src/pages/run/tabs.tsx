// The parts of a run's page, and how the timeline is shown.
import type { RunView } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { t, useLanguage } from "../../i18n";
import type { RunTab } from "../../app/run-tab";
import { Segmented } from "../../ui";
import { TIMELINE_VIEWS, type RunPlace } from "./location";
import { artifactCount } from "./words";

/** The tabs. A count of nothing is not shown, but has its place. */
export function RunTabs({ id, tab, view, place }: { id: string; tab: RunTab; view: RunView; place: RunPlace }) {
  useLanguage();
  const counts: Partial<Record<RunTab, number>> = {
    timeline: view.lastSequence,
    diff: view.review?.diff.stats?.files ?? 0,
    artifacts: artifactCount(view),
  };
  return (
    <nav className="tabs" aria-label={t("run.parts")}>
      {TABS.map(([name, to]) => (
        <Link
          key={name}
          to={to}
          params={{ id }}
          search={name === "timeline" ? timelineSearch(place) : {}}
          resetScroll={false}
          activeOptions={{ exact: name !== "artifacts", includeSearch: false }}
        >
          {t(`run.tab.${name}`)}
          {name in counts && <span className={`count count--${name}`}>{counts[name] === 0 ? "" : counts[name]}</span>}
        </Link>
      ))}
      {tab === "timeline" && (
        <span className="end">
          <Segmented
            label={t("run.viewLabel")}
            value={place.view}
            options={TIMELINE_VIEWS.map((value) => ({ value, label: t(`run.view.${value}`) }))}
            onChange={place.setView}
          />
        </span>
      )}
    </nav>
  );
}

const TABS = [
  ["timeline", "/runs/$id"],
  ["diff", "/runs/$id/diff"],
  ["artifacts", "/runs/$id/artifacts"],
  ["transcript", "/runs/$id/transcript"],
  ["audit", "/runs/$id/audit"],
] as const;

function timelineSearch({ view }: RunPlace): { view?: string } {
  return view === "compact" ? {} : { view };
}
