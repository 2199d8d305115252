// Whether the hub can be reached. It is always shown and never moves what somebody reads.
import { useHub } from "@runyard/react";
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { t, useLanguage } from "../i18n";
import { Button, clockText, LiveBadge } from "../ui";
import { announce } from "./announce";

/** Says it when the hub goes away and when it comes back. */
export function Connection() {
  const away = useHub().link.kind === "waiting";
  const was = useRef(away);
  useEffect(() => {
    if (was.current === away) return;
    was.current = away;
    announce(t(away ? "common.offline.lost" : "common.offline.back"));
  }, [away]);
  return null;
}

/** Pages that say themselves how the connection stands, beside what it is about. */
const OWN_BADGE = /^\/(runs(?!\/new)|approvals)(\/|$)/;

/**
 * How the connection stands, unless the page itself says it; while the hub is away always, with since when, and a button that tries
 * at once.
 */
export function Standing() {
  useLanguage();
  const { link, retry } = useHub();
  const said = useRouterState({ select: (state) => OWN_BADGE.test(state.location.pathname) });
  if (said && link.kind !== "waiting") return null;
  return (
    <div className="standing" data-away={link.kind === "waiting" || undefined}>
      <LiveBadge link={link} />
      {link.kind === "waiting" && (
        <>
          <span className="muted">{t("common.link.lastAt", { time: clockText(link.lastAt ?? link.since) })}</span>
          <Button icon="retry" onClick={retry}>
            {t("common.offline.tryNow")}
          </Button>
        </>
      )}
    </div>
  );
}

/** The same on a narrow window: an icon where there is only room for one. */
export function RetryNow() {
  useLanguage();
  const { link, retry } = useHub();
  if (link.kind === "live" || link.kind === "ended") return null;
  return (
    <>
      <LiveBadge link={link} short />
      {link.kind === "waiting" && <Button kind="ghost" icon="retry" label={t("common.offline.tryNow")} onClick={retry} />}
    </>
  );
}
