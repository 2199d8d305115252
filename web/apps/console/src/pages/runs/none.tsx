// The list without rows: nothing was ever run, nothing matches, or the hub is away.
import { LinkButton, Button, Ago, Empty, stateText, visible } from "../../ui";
import { plural, t } from "../../i18n";
import { matches, readFilter, type Filterable, type RunsSearch } from "./filter";

/** Nothing was ever run: the command that does. */
export function FirstRun() {
  return (
    <div className="center">
      <Empty
        icon="runs"
        title={t("runs.first.title")}
        command={`runyard run "${t("runs.first.task")}"`}
        action={
          <LinkButton kind="ink" icon="plus" to="/runs/new">
            {t("common.newRun")}
          </LinkButton>
        }
      >
        {t("runs.first.text")}
      </Empty>
    </div>
  );
}

/** Nothing matches: what there is outside the filters. */
export function NoMatch({ search, outside, searched, onClear, onOlder }: {
  search: RunsSearch;
  outside: readonly Filterable[];
  searched: number;
  onClear: () => void;
  onOlder: (() => void) | undefined;
}) {
  const filter = readFilter(search);
  const everywhere = { ...filter, workspace: undefined };
  const elsewhere = filter.workspace === undefined ? undefined : outside.find((run) => matches(run, everywhere, Date.now()));
  const states = [...filter.states].map(stateText).join(", ");
  const { workspace: _, ...anywhere } = search;
  return (
    <div className="center">
      <Empty
        title={states && filter.workspace ? t("runs.none.titleIn", { states, workspace: filter.workspace }) : t("runs.none.title")}
        action={
          <>
            <Button onClick={onClear}>{t("runs.none.clear")}</Button>
            {elsewhere && (
              <LinkButton kind="ghost" to="/runs" search={anywhere}>
                {t("runs.none.everywhere")}
              </LinkButton>
            )}
            {onOlder && (
              <Button kind="ghost" onClick={onOlder}>
                {t("runs.none.older")}
              </Button>
            )}
          </>
        }
      >
        <p>
          {plural(outside.length, "runs.none.oneOutside", "runs.none.outside")}{" "}
          {elsewhere && (
            <>
              {t("runs.none.newest", { workspace: visible(elsewhere.workspace.label) })} <Ago at={elsewhere.lastEventAt} />.{" "}
            </>
          )}
          {onOlder && t("runs.none.searched", { count: searched })}
        </p>
      </Empty>
    </div>
  );
}

/** Nothing is known yet and the hub does not answer. */
export function HubAway() {
  return (
    <div className="center">
      <Empty icon="degraded" title={t("runs.away.title")} command="runyard up">
        {t("runs.away.text")}
      </Empty>
    </div>
  );
}
