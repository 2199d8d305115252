// Whether the hub can be reached. It is always shown and never moves what somebody reads.
import { useHub } from "@runyard/react";
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

/** How the connection stands; while the hub is away also since when, and a button that tries at once. */
export function Standing() {
  useLanguage();
  const { link, retry } = useHub();
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
