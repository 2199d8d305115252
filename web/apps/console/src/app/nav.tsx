// What is in the navigation.
import { Link, type LinkProps } from "@tanstack/react-router";
import { useData, useHub } from "@runyard/react";
import { currentLanguage, plural, setLanguage, t, useLanguage, type Key, type Language } from "../i18n";
import { Icon, Segmented, type IconName } from "../ui";
import { useAttention } from "./attention";
import { boot } from "./boot";
import { Brand } from "./brand";
import { Standing } from "./connection";
import { overlay } from "./overlay";
import { setTheme, useTheme, type Theme } from "./theme";

interface Entry {
  to: NonNullable<LinkProps["to"]>;
  icon: IconName;
  text: Key;
}

const SYSTEM: readonly Entry[] = [
  { to: "/agents", icon: "agent", text: "common.nav.agents" },
  { to: "/edges", icon: "edge", text: "common.nav.edges" },
  { to: "/policy", icon: "shield", text: "common.nav.policy" },
  { to: "/audit", icon: "audit", text: "common.nav.audit" },
  { to: "/dev", icon: "dev", text: "common.nav.dev" },
];

/** Where one can go, then how things stand, then how it looks. */
export function NavContent() {
  useLanguage();
  const hub = boot().hub;
  return (
    <>
      <Brand />
      <button type="button" className="field" onClick={() => overlay("palette")}>
        <span className="row">
          <Icon name="search" small />
          {t("common.search")}
        </span>
        <kbd aria-hidden="true">{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      {hub && (
        <>
          <h3>{t("common.work")}</h3>
          <NavLink to="/runs" icon="runs" text="common.nav.runs" />
          <ApprovalsEntry />
        </>
      )}
      <h3>{t("common.system")}</h3>
      {SYSTEM.filter(({ to }) => hub || to === "/dev").map((entry) => (
        <NavLink key={entry.to} {...entry} />
      ))}
      <div className="foot">
        {hub && <Foot />}
        <Looks />
      </div>
    </>
  );
}

function NavLink({ to, icon, text }: Entry) {
  return (
    <Link to={to} activeProps={{ "aria-current": "page" }} title={t(text)}>
      <Icon name={icon} />
      {t(text)}
    </Link>
  );
}

function ApprovalsEntry() {
  const waiting = useAttention().length;
  return (
    <Link to="/approvals" activeProps={{ "aria-current": "page" }} title={t("common.nav.approvals")}>
      <Icon name="inbox" />
      {t("common.nav.approvals")}
      {waiting > 0 && (
        <span className="count count--turn">
          <span aria-hidden="true">{waiting}</span>
          <span className="sr">{plural(waiting, "common.approvalWaiting", "common.approvalsWaiting")}</span>
        </span>
      )}
    </Link>
  );
}

function Foot() {
  const { link, actor } = useHub();
  return (
    <>
      <Standing />
      <EdgeState live={link.kind === "live"} />
      <Link to="/settings" className="item" title={actor ? t("common.loggedInAs", { actor: actor.id }) : undefined}>
        <Icon name="needs_approval" small />
        <span className="trunc">{actor?.id ?? t("common.notLoggedIn")}</span>
      </Link>
    </>
  );
}

/** Which edges are there, as far as that is known. */
export function EdgeState({ live }: { live: boolean }) {
  const { data: read, error } = useData("edge_list", {});
  // Of a hub that is away, or does not say it, nobody knows what its edges do.
  const data = live && error === null ? read : undefined;
  const edges = data?.edges ?? [];
  const [first] = edges;
  const online = edges.filter((edge) => edge.connected).length;
  let text = t("common.edgeUnknown");
  if (data && first === undefined) text = t("common.noEdge");
  else if (first && edges.length === 1) text = t(first.connected ? "common.edgeOnline" : "common.edgeOffline", { edge: first.id });
  else if (first) text = t("common.edgesOnline", { online, count: edges.length });
  return (
    <Link to="/edges" className="item" data-edges={online}>
      <Icon name={data && online === 0 ? "degraded" : "edge"} small />
      <span className="trunc">{text}</span>
    </Link>
  );
}

const THEMES = ["light", "dark", "contrast"] as const;

function Looks() {
  const language = useLanguage();
  const theme = useTheme();
  return (
    <>
      <Segmented<Language>
        className="theme theme--two"
        label={t("common.language.name")}
        value={language}
        onChange={(next) => {
          if (next !== currentLanguage()) void setLanguage(next);
        }}
        options={[
          { value: "en", label: <span lang="en">{t("common.language.en")}</span> },
          { value: "zh", label: <span lang="zh-CN">{t("common.language.zh")}</span> },
        ]}
      />
      <Segmented<Theme>
        className="theme"
        label={t("common.theme.name")}
        value={theme}
        // Pressing what is pressed gives the choice back to the system.
        onChange={(next) => setTheme(next === theme ? "system" : next)}
        options={THEMES.map((value) => ({ value, label: t(`common.theme.${value}`) }))}
      />
    </>
  );
}
