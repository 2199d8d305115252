// The row of filters. Each writes to the address and nowhere else.
import { useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { t, type Key } from "../../i18n";
import { Icon, Menu, Segmented, STATES, stateText, useShortcut, type MenuItem } from "../../ui";
import { SINCE, VIEWS, type Filter, type Filterable, type RunsSearch, type View } from "./filter";

const TYPED_MS = 150;

/** Text, state, workspace, agent, time, and the four views with their counts. */
export function Filters({ search, filter, runs, counts, more }: {
  search: RunsSearch;
  filter: Filter;
  runs: readonly Filterable[];
  counts: Record<View, number>;
  /** Whether there are more than were counted. */
  more: Record<View, boolean>;
}) {
  const router = useRouter();
  // Going back undoes the last choice; what is typed letter by letter is one and the same place.
  const go = (change: RunsSearch, replace: boolean) => void router.navigate({ to: "/runs", search: { ...search, ...change }, replace });
  const set = (change: RunsSearch) => go(change, false);
  const workspaces = distinct([...runs.map(({ workspace }) => workspace.label), ...(filter.workspace ? [filter.workspace] : [])]);
  const agents = distinct([...runs.map(({ agentId }) => agentId), ...(filter.agent ? [filter.agent] : [])]);
  const states: MenuItem[] = STATES.map((state) => ({
    key: state,
    label: stateText(state),
    icon: state,
    checked: filter.states.has(state),
    onSelect: () => set({ state: STATES.filter((one) => filter.states.has(one) !== (one === state)).join(",") }),
  }));
  return (
    <div className="filters" role="search" aria-label={t("runs.filters")}>
      <SearchField value={search.text ?? ""} onChange={(text) => go({ text }, true)} />
      <Menu
        align="start"
        label={t("runs.filter.state")}
        trigger={<FilterButton name="runs.filter.state" value={[...filter.states].map(stateText).join(", ")} />}
        groups={[states, [one(t("runs.filter.any"), filter.states.size === 0, () => set({ state: "" }))]]}
      />
      <Choice name="runs.filter.workspace" value={filter.workspace} options={workspaces} onChange={(workspace) => set({ workspace })} />
      <Choice name="runs.filter.agent" value={filter.agent} options={agents} onChange={(agent) => set({ agent })} />
      <Choice
        name="runs.filter.since"
        value={filter.since}
        options={SINCE}
        text={(since) => t(`runs.since.${since}`)}
        onChange={(since) => set({ since })}
      />
      <span className="grow" />
      <Segmented<View>
        label={t("runs.views")}
        value={filter.view}
        onChange={(view) => set({ view: view === "all" ? "" : view })}
        options={VIEWS.map((view) => ({
          value: view,
          label: (
            <>
              {t(`runs.view.${view}`)} <span className="count count--fixed">{countText(counts[view], more[view])}</span>
            </>
          ),
        }))}
      />
    </div>
  );
}

/** No number for nothing. */
function countText(count: number, atLeast: boolean): string {
  return count === 0 ? "" : `${count}${atLeast ? "+" : ""}`;
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort((a, b) => a.localeCompare(b));
}

function one(label: string, chosen: boolean, onSelect: () => void): MenuItem {
  return { key: label, label, onSelect, ...(chosen && { icon: "check" as const }) };
}

function Choice<T extends string>({ name, value, options, text = (option) => option, onChange }: {
  name: Key;
  value: T | undefined;
  options: readonly T[];
  text?: (option: T) => string;
  onChange: (value: T | "") => void;
}) {
  const any = one(t("runs.filter.any"), value === undefined, () => onChange(""));
  return (
    <Menu
      align="start"
      label={t(name)}
      trigger={<FilterButton name={name} value={value === undefined ? "" : text(value)} />}
      groups={[[any], options.map((option) => one(text(option), option === value, () => onChange(option)))]}
    />
  );
}

function FilterButton({ name, value, ...given }: { name: Key; value: string }) {
  return (
    <button type="button" className="field filter" data-on={value !== "" || undefined} {...given}>
      {t(name)} <b className="trunc">{value === "" ? t("runs.filter.any") : value}</b>
      <Icon name="down" small />
    </button>
  );
}

function SearchField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const latest = useRef(onChange);
  useEffect(() => {
    latest.current = onChange;
  });
  // The address may change without the field: by the back button, or when all filters are cleared.
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => latest.current(typed), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed, value]);
  useShortcut("/", "runs.keys.filter", () => input.current?.select());
  return (
    <label className="field filter--text">
      <Icon name="search" small />
      <span className="sr">{t("runs.searchName")}</span>
      <input
        ref={input}
        type="search"
        placeholder={t("runs.searchPlaceholder")}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          if (typed === "") input.current?.blur();
          else setTyped("");
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}
