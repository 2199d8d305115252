// One field for everything: runs by id, title, workspace, state or code, pages, and what can be done on this page.
import { useRouter } from "@tanstack/react-router";
import { useRuns } from "@runyard/react";
import { useId, useState, type KeyboardEvent as ReactKey } from "react";
import { setLanguage, t, useLanguage, type Key } from "../i18n";
import { Icon, Modal, StateIcon, stateText, visible, type IconName } from "../ui";
import { boot } from "./boot";
import { Keys } from "./key-help";
import { overlay } from "./overlay";
import { taskTitle } from "./run-title";
import { useShortcuts } from "./shortcuts";
import { setTheme } from "./theme";

const SHOWN_MAX = 8;
const RUN_ID = /^run_[0-9a-z]{6,64}$/;

interface Choice {
  key: string;
  text: string;
  icon?: IconName;
  state?: string;
  note?: string;
  keys?: string;
  choose: () => void;
}

const PAGES = [
  { to: "/runs", icon: "runs", text: "common.nav.runs" },
  { to: "/approvals", icon: "inbox", text: "common.nav.approvals" },
  { to: "/agents", icon: "agent", text: "common.nav.agents" },
  { to: "/edges", icon: "edge", text: "common.nav.edges" },
  { to: "/policy", icon: "shield", text: "common.nav.policy" },
  { to: "/audit", icon: "audit", text: "common.nav.audit" },
  { to: "/dev", icon: "dev", text: "common.nav.dev" },
  { to: "/settings", icon: "low", text: "common.nav.settings" },
] as const satisfies readonly { to: string; icon: IconName; text: Key }[];

/** The palette. */
export function Palette() {
  return boot().hub ? <HubPalette /> : <Panel runs={[]} />;
}

interface Listed {
  id: string;
  state: string;
  code: string;
  title: string;
  workspace: string;
}

function HubPalette() {
  const { runs } = useRuns({});
  const listed = runs.map((run) => ({
    id: run.id,
    state: run.state,
    code: run.code ?? "",
    title: taskTitle(run.task),
    workspace: visible(run.workspace.label),
  }));
  return <Panel runs={listed} />;
}

function Panel({ runs }: { runs: readonly Listed[] }) {
  useLanguage();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const groups = useChoices(text.trim().toLowerCase(), runs);
  const all = groups.flatMap(({ choices }) => choices);
  const chosen = Math.min(at, all.length - 1);
  const close = () => overlay(null);

  function choose(choice: Choice | undefined): void {
    if (!choice) return;
    close();
    choice.choose();
  }

  function onKeyDown(event: ReactKey): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && all.length > 0) {
      event.preventDefault();
      setAt((chosen + step + all.length) % all.length);
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      choose(all[chosen]);
    }
  }

  return (
    <Modal open plain wide title={t("common.palette.title")} onClose={close}>
      <div className="palette" onKeyDown={onKeyDown}>
        <label className="palette__field">
          <Icon name="search" />
          <span className="sr">{t("common.palette.title")}</span>
          <input
            autoFocus
            role="combobox"
            aria-expanded={all.length > 0}
            aria-controls={list}
            aria-activedescendant={all.length > 0 ? `${list}-${chosen}` : undefined}
            placeholder={t("common.palette.placeholder")}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
          />
        </label>
        {all.length === 0 && (
          <p className="muted palette__none" role="status">
            {t("common.palette.none")}
          </p>
        )}
        <div className="palette__list scroll" id={list} role="listbox" aria-label={t("common.palette.title")} hidden={all.length === 0}>
          {groups.map(({ title, choices }) => (
            <div key={title} role="group" aria-label={title}>
              <div className="label palette__group" aria-hidden="true">
                {title}
              </div>
              {choices.map((choice) => (
                <Entry
                  key={choice.key}
                  choice={choice}
                  id={`${list}-${all.indexOf(choice)}`}
                  chosen={all[chosen] === choice}
                  onChoose={() => choose(choice)}
                />
              ))}
            </div>
          ))}
        </div>
        <p className="muted palette__hint">{t("common.palette.hint")}</p>
      </div>
    </Modal>
  );
}

function Entry({ choice, id, chosen, onChoose }: { choice: Choice; id: string; chosen: boolean; onChoose: () => void }) {
  return (
    <div
      id={id}
      role="option"
      aria-selected={chosen}
      className="palette__item"
      onClick={onChoose}
      ref={(element) => {
        if (chosen) element?.scrollIntoView({ block: "nearest" });
      }}
    >
      {choice.state !== undefined ? <StateIcon state={choice.state} /> : choice.icon && <Icon name={choice.icon} />}
      <span className="grow trunc">{choice.text}</span>
      {choice.note && <span className="muted trunc palette__note">{choice.note}</span>}
      {choice.keys && <Keys keys={choice.keys} />}
    </div>
  );
}

/** What matches, in groups. A whole run id always opens its run, also one that is in no list. */
function useChoices(text: string, runs: readonly Listed[]): { title: string; choices: Choice[] }[] {
  const router = useRouter();
  const shortcuts = useShortcuts();
  const hub = boot().hub;
  const open = (id: string) => void router.navigate({ to: "/runs/$id", params: { id } });
  const has = (...words: string[]) => words.some((word) => word.toLowerCase().includes(text));

  const found: Choice[] = runs
    .filter((run) => has(run.id, run.title, run.workspace, run.state, stateText(run.state), run.code))
    .slice(0, SHOWN_MAX)
    .map((run) => ({
      key: run.id,
      text: run.title,
      state: run.state,
      note: `${stateText(run.state)} · ${run.workspace}`,
      choose: () => open(run.id),
    }));
  if (RUN_ID.test(text) && !runs.some(({ id }) => id === text)) {
    found.unshift({ key: text, text: t("common.palette.open", { id: text }), icon: "runs", choose: () => open(text) });
  }
  const actions: Choice[] = shortcuts
    .filter(({ description }) => !description.startsWith("common.keys.") && has(t(description)))
    .map(({ keys, description, handler }) => ({
      key: keys,
      text: t(description),
      icon: "chev",
      keys,
      // Only after the palette has given the focus back to the page.
      choose: () => setTimeout(() => handler(new KeyboardEvent("keydown"))),
    }));
  const there = PAGES.filter(({ to, text: name }) => (hub || to === "/dev") && has(t(name), to));
  const pages: Choice[] = there.map(({ to, icon, text: name }) => ({ key: to, text: t(name), icon, choose: () => void router.navigate({ to }) }));
  if (hub && has(t("common.newRun"))) {
    pages.push({ key: "new", text: t("common.newRun"), icon: "plus", keys: "c", choose: () => void router.navigate({ to: "/runs/new" }) });
  }
  const settings: Choice[] = [
    ...(["light", "dark", "contrast", "system"] as const).map((theme) => ({
      key: theme,
      text: `${t("common.theme.name")}: ${t(`common.theme.${theme}`)}`,
      icon: "eye" as const,
      choose: () => setTheme(theme),
    })),
    ...(["en", "zh"] as const).map((language) => ({
      key: language,
      text: `${t("common.language.name")}: ${t(`common.language.${language}`)}`,
      icon: "globe" as const,
      choose: () => void setLanguage(language),
    })),
  ].filter(({ text: name }) => text !== "" && has(name));
  return [
    { title: t("common.palette.runs"), choices: found },
    { title: t("common.palette.actions"), choices: actions },
    { title: t("common.palette.pages"), choices: pages },
    { title: t("common.palette.settings"), choices: settings },
  ].filter(({ choices }) => choices.length > 0);
}
