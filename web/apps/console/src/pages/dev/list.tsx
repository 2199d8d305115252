// The actions to choose from.
import type { ActionManifest } from "@runyard/react";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { t, useLanguage } from "../../i18n";
import { Icon, Kbd, useShortcut, visible } from "../../ui";
import { fitting } from "./deed";

/** All actions, with a filter. A slash goes to it; arrows go through the list. */
export function ActionList({ actions, chosen }: { actions: readonly ActionManifest[]; chosen: string | undefined }) {
  useLanguage();
  const [filter, setFilter] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const navigate = useNavigate();
  useShortcut("/", "dev.filter", () => field.current?.focus());
  useEffect(() => void list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }), [chosen]);
  const all = actions.length;
  const found = fitting(actions, filter);
  const open = (action: string) => void navigate({ to: "/dev/$action", params: { action } });
  const move = (event: KeyboardEvent) => {
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const place = links.findIndex((link) => link === document.activeElement);
    const first = found[0];
    if (event.key === "Enter" && event.target === field.current && first) open(first.name);
    else if (event.key === "ArrowDown") (links[place + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp") (place > 0 ? links[place - 1] : field.current)?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <nav className="devlist" aria-label={t("dev.actions")} onKeyDown={move}>
      <label className="field devlist__filter">
        <Icon name="search" small />
        <span className="sr">{t("dev.filter")}</span>
        <input
          ref={field}
          id="dev-filter"
          type="search"
          value={filter}
          placeholder={t("dev.filter")}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setFilter(event.target.value)}
        />
        <Kbd>/</Kbd>
      </label>
      <p className="devlist__count muted" role="status">
        {found.length === all ? t("dev.count", { count: all }) : t("dev.countOf", { count: found.length, all })}
      </p>
      <Legend asks={actions.some((action) => action.requiresConfirmation)} />
      <ul ref={list} className="devlist__all scroll">
        {found.map((action) => (
          <li key={action.name}>
            <Link
              to="/dev/$action"
              params={{ action: action.name }}
              className="devlist__item"
              aria-current={action.name === chosen ? "page" : undefined}
              data-name={action.name}
            >
              <span className={`spot spot--${action.sideEffects}`} aria-hidden="true" title={t(`dev.sideEffects.${action.sideEffects}`)} />
              <span className="trunc">{visible(action.name)}</span>
              <span className="sr">
                {`(${t(`dev.sideEffects.${action.sideEffects}`)}${action.requiresConfirmation ? `, ${t("dev.asksFirst")}` : ""})`}
              </span>
              {action.requiresConfirmation && <Icon name="needs_approval" small />}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const SIDE_EFFECTS = ["read", "write", "destructive"] as const;

/** What the marks before and behind the names mean. */
function Legend({ asks }: { asks: boolean }) {
  return (
    <ul className="devlist__legend muted" aria-label={t("dev.legend")}>
      {SIDE_EFFECTS.map((each) => (
        <li key={each}>
          <span className={`spot spot--${each}`} aria-hidden="true" /> {t(`dev.sideEffects.${each}`)}
        </li>
      ))}
      {asks && (
        <li>
          <Icon name="needs_approval" small /> {t("dev.asksFirst")}
        </li>
      )}
    </ul>
  );
}

/** What there is to know before an action is called. */
export function Marks({ action }: { action: ActionManifest }) {
  return (
    <span className="marks">
      <span className={`chip chip--line effect-${action.sideEffects}`}>{t(`dev.sideEffects.${action.sideEffects}`)}</span>
      {action.requiresConfirmation && <span className="chip chip--line">{t("dev.asksFirst")}</span>}
      {action.peopleOnly && <span className="chip chip--line">{t("dev.peopleOnly")}</span>}
      {action["deprecated"] === true && <span className="chip chip--line">{t("dev.deprecated")}</span>}
    </span>
  );
}
