// The frame around every page: where one can go, who is there, whether what is shown is current.
import { Outlet, useRouter, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { t, useLanguage } from "../i18n";
import { Button, LinkButton } from "../ui";
import { useAnnouncement } from "./announce";
import { useAttention } from "./attention";
import { boot } from "./boot";
import { Brand } from "./brand";
import { NavContent } from "./nav";
import { Connection, RetryNow } from "./connection";
import { Drawer } from "./drawer";
import { overlay, useOverlay } from "./overlay";
import { SessionGate } from "./session";
import { startShortcuts, useShortcut } from "./shortcuts";

const Palette = lazy(() => import("./palette").then(({ Palette }) => ({ default: Palette })));
const KeyHelp = lazy(() => import("./key-help").then(({ KeyHelp }) => ({ default: KeyHelp })));

/** What all pages stand in. The login page stands alone. */
export function Root() {
  const login = useRouterState({ select: (state) => state.location.pathname === "/login" });
  return login ? <Outlet /> : <Frame />;
}

function Frame() {
  useLanguage();
  useEffect(startShortcuts, []);
  useFocusOnNavigation();
  useGlobalKeys();
  const open = useOverlay();
  return (
    <>
      <a className="skip" href="#main">
        {t("common.skip")}
      </a>
      <div className="app">
        <nav className="nav" aria-label={t("common.mainNav")}>
          <NavContent />
        </nav>
        <TopBar />
        <main className="main" id="main" tabIndex={-1}>
          <SessionGate>
            <Outlet />
          </SessionGate>
        </main>
      </div>
      <Announcer />
      <Connection />
      {boot().hub && <Attention />}
      <Suspense fallback={null}>
        {open === "palette" && <Palette />}
        {open === "keys" && <KeyHelp />}
      </Suspense>
    </>
  );
}

function TopBar() {
  useLanguage();
  const [open, setOpen] = useState(false);
  return (
    <header className="mtop">
      <Button kind="ghost" icon="menu" label={t("common.menu")} expanded={open} onClick={() => setOpen(true)} />
      <Brand />
      <span className="grow" />
      <RetryNow />
      {boot().hub && <ApprovalsLink />}
      <Drawer open={open} onClose={() => setOpen(false)}>
        <NavContent />
      </Drawer>
    </header>
  );
}

function ApprovalsLink() {
  useLanguage();
  const waiting = useAttention().length;
  return (
    <LinkButton to="/approvals" icon="inbox">
      {t("common.nav.approvals")} {waiting > 0 && <span className="count count--turn">{waiting}</span>}
    </LinkButton>
  );
}

function Attention() {
  useAttention({ notify: true });
  return null;
}

function Announcer() {
  return (
    <div className="sr" role="status" aria-live="polite">
      {useAnnouncement()}
    </div>
  );
}

/** After going somewhere the reader stands at that page's heading; going back and forth inside a page moves nothing. */
function useFocusOnNavigation(): void {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe("onRendered", ({ fromLocation, toLocation, pathChanged }) => {
        if (!pathChanged || fromLocation === undefined || placeOf(fromLocation.pathname) === placeOf(toLocation.pathname)) return;
        const place = document.querySelector<HTMLElement>("[data-page-focus]") ?? document.querySelector<HTMLElement>("[data-page-title]");
        place?.focus({ preventScroll: true });
      }),
    [router],
  );
}

/** The parts of one run, one inbox or one list of actions are the same place. */
function placeOf(pathname: string): string {
  const [, area = "", id = ""] = pathname.split("/");
  return area === "runs" ? `runs/${id}` : area;
}

function useGlobalKeys(): void {
  const router = useRouter();
  const hub = boot().hub;
  useShortcut("mod+k", "common.keys.palette", () => overlay("palette"));
  useShortcut("?", "common.keys.help", () => overlay("keys"));
  useShortcut("c", "common.keys.newRun", () => void router.navigate({ to: "/runs/new" }), { when: hub });
  useShortcut("g r", "common.keys.runs", () => void router.navigate({ to: "/runs" }), { when: hub });
  useShortcut("g a", "common.keys.approvals", () => void router.navigate({ to: "/approvals" }), { when: hub });
  useShortcut("g n", "common.keys.agents", () => void router.navigate({ to: "/agents" }), { when: hub });
  useShortcut("g e", "common.keys.edges", () => void router.navigate({ to: "/edges" }), { when: hub });
  useShortcut("g p", "common.keys.policy", () => void router.navigate({ to: "/policy" }), { when: hub });
  useShortcut("g u", "common.keys.audit", () => void router.navigate({ to: "/audit" }), { when: hub });
  useShortcut("g d", "common.keys.dev", () => void router.navigate({ to: "/dev" }));
  useShortcut("g s", "common.keys.settings", () => void router.navigate({ to: "/settings" }), { when: hub });
}
