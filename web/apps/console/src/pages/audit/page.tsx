// The installation's audit, with filters in the address.
import { useHub } from "@runyard/react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { absoluteText, Block, Button, clockText, Copy, Empty, ErrorNote, Icon, KeyValue, PageHead, useShortcut } from "../../ui";
import { pretty } from "../dev/pretty";
import { actorOf, found, typeText, useEntries, type Entry } from "./entries";
import { EntryTable } from "./table";
import { Verify } from "./verify";

/** The audit's page. */
export function AuditPage() {
  useLanguage();
  const { can } = useHub();
  const mayRead = can("audit.read");
  const { entries, more, loading, error, readAt, readOn } = useEntries(mayRead);
  const search = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const go = (next: typeof search, replace: boolean) => void navigate({ search: { ...search, ...next }, replace });
  const set = (next: typeof search) => go(next, true);
  const shown = useMemo(() => found(entries, search), [entries, search]);
  const types = useMemo(() => [...new Set(entries.map((entry) => entry.type))].sort(), [entries]);
  const selected = entries.find((entry) => String(entry.sequence) === search.sel);
  const before = selected && entries.find((entry) => entry.sequence === selected.sequence - 1);
  useShortcut("escape", "audit.close", () => set({ sel: "" }), { when: selected !== undefined });
  if (!mayRead) {
    return (
      <>
        <PageHead title={t("audit.title")} />
        <div className="page">
          <Empty icon="lock" title={t("audit.notAllowed")}>
            {t("system.needs", { permission: "audit.read" })}
          </Empty>
        </div>
      </>
    );
  }
  const all = entries.length;
  const whole = plural(all, "audit.countOne", "audit.count");
  const part = shown.length === all ? whole : t("audit.countOf", { count: shown.length, all });
  // It does not grow by itself, so it says how old it is.
  const count = readAt === null ? part : t("audit.asOf", { count: part, time: clockText(readAt) });
  return (
    <>
      <PageHead
        title={t("audit.title")}
        count={loading && entries.length === 0 ? t("system.reading") : count}
        end={
          <Button icon="retry" pending={loading} onClick={readOn}>
            {t("audit.readOn")}
          </Button>
        }
      />
      <Verify onVerified={readOn} />
      <Filters types={types} type={search.type ?? ""} actor={search.actor ?? ""} onChange={go} />
      {error && <ErrorNote error={error} />}
      <div className="split">
        <div className="fill">
          {shown.length > 0 ? (
            <EntryTable
              entries={shown}
              selected={selected?.sequence}
              onSelect={(sequence) => set({ sel: sequence === undefined ? "" : String(sequence) })}
              label={t("audit.title")}
            />
          ) : (
            !loading && <Nothing all={entries.length} onClear={() => go({ type: "", actor: "" }, false)} />
          )}
          {more && (
            <div className="entries__more">
              <span className="muted">{t("audit.more", { sequence: entries.at(-1)?.sequence ?? 0 })}</span>
              <Button pending={loading} onClick={readOn}>
                {t("audit.loadMore")}
              </Button>
            </div>
          )}
        </div>
        {selected && <Detail entry={selected} before={before} onClose={() => set({ sel: "" })} />}
      </div>
    </>
  );
}

function Filters({ types, type, actor, onChange }: {
  types: readonly string[];
  type: string;
  actor: string;
  /** `replace` is for what is typed letter by letter: going back undoes a choice. */
  onChange: (next: { type?: string; actor?: string }, replace: boolean) => void;
}) {
  return (
    <div className="filters filters--audit" role="search">
      <label className="field field--select">
        {t("audit.what")}
        <select value={type} onChange={(event) => onChange({ type: event.target.value }, false)}>
          <option value="">{t("audit.anyType")}</option>
          {types.map((each) => (
            <option key={each} value={each}>
              {typeText(each)}
            </option>
          ))}
        </select>
        <Icon name="down" small />
      </label>
      <label className="field">
        {t("audit.who")}
        <input
          type="search"
          value={actor}
          placeholder={t("audit.anyActor")}
          onChange={(event) => onChange({ actor: event.target.value }, true)}
        />
      </label>
      {(type || actor) && (
        <Button kind="ghost" icon="x" onClick={() => onChange({ type: "", actor: "" }, false)}>
          {t("audit.clear")}
        </Button>
      )}
    </div>
  );
}

function Nothing({ all, onClear }: { all: number; onClear: () => void }) {
  if (all > 0) {
    return (
      <Empty title={t("audit.noMatch")} action={<Button onClick={onClear}>{t("audit.clear")}</Button>}>
        {plural(all, "audit.outsideOne", "audit.outside")}
      </Empty>
    );
  }
  return (
    <Empty icon="audit" title={t("audit.none")} command="runyard audit show">
      {t("audit.noneAbout")}
    </Empty>
  );
}

function Detail({ entry, before, onClose }: { entry: Entry; before: Entry | undefined; onClose: () => void }) {
  const actor = actorOf(entry);
  return (
    <aside className="split__side scroll" aria-label={t("audit.entry", { sequence: entry.sequence })}>
      <div className="row">
        <h2 className="grow">
          #{entry.sequence} {typeText(entry.type)}
        </h2>
        <Button kind="ghost" icon="x" label={t("audit.close")} onClick={onClose} />
      </div>
      <KeyValue
        wide
        pairs={[
          [t("audit.type"), <code key="type">{entry.type}</code>],
          [t("audit.when"), <time key="at" dateTime={entry.at}>{absoluteText(entry.at)}</time>],
          [t("audit.who"), `${actor.id} (${actor.kind})`],
        ]}
      />
      <Hash name={t("audit.hash")} hash={entry.hash} />
      {before && <Hash name={t("audit.previous")} hash={before.hash} />}
      <h3>{t("audit.detail")}</h3>
      <Block wrap label={t("audit.detail")}>
        {pretty({ by: entry.by, what: entry.what })}
      </Block>
    </aside>
  );
}

function Hash({ name, hash }: { name: string; hash: string }) {
  return (
    <div className="hash">
      <span className="label">{name}</span>
      <code>{hash}</code>
      <Copy text={hash} label={t("audit.copyHash")} />
    </div>
  );
}
