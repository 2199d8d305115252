// A run's state, always as icon, word and colour together.
import type { Link as Connection, RunState } from "@runyard/react";
import { maybe, t, useLanguage, type Key } from "../i18n";
import { Icon, type IconName } from "./icon";
import { clockText, durationText, useNow } from "./time";

/** The ten states in the order of a run's life. */
export const STATES = [
  "created", "planned", "accepted", "preparing", "running", "needs_approval", "applying", "completed", "failed", "cancelled",
] as const satisfies readonly RunState[];

const known = new Set<string>(STATES);

function isState(state: string): state is RunState {
  return known.has(state);
}

/** The state's word. A state of a later version stays as it is. */
export function stateText(state: string): string {
  return maybe(`common.state.${state}`) ?? state;
}

/** The state's icon. */
export function StateIcon({ state, small = false }: { state: string; small?: boolean }) {
  const name: IconName = isState(state) ? state : "question";
  return <Icon name={name} small={small} />;
}

/** The state's pill in a slot as wide as the longest word, so that a change of state moves nothing. */
export function StatePill({ state }: { state: RunState | "unknown" }) {
  useLanguage();
  return (
    <span className="slot">
      <span className={`pill st-${isState(state) ? state : "created"}`} data-state={state}>
        <StateIcon state={state} />
        {stateText(state)}
      </span>
    </span>
  );
}

/** Says that something usually relied on is missing; the reasons are its description. */
export function DegradedFlag({ reasons }: { reasons: readonly string[] }) {
  useLanguage();
  return (
    <span className="flag st-degraded" title={reasons.join("\n")}>
      <Icon name="degraded" small />
      {t("common.degraded")}
      <span className="sr">: {reasons.join("; ")}</span>
    </span>
  );
}

const RISKS: Record<string, { icon: IconName; key: Key }> = {
  low: { icon: "low", key: "common.risk.low" },
  medium: { icon: "medium", key: "common.risk.medium" },
  high: { icon: "high", key: "common.risk.high" },
};

/** How much is at stake. */
export function Risk({ risk }: { risk: string }) {
  useLanguage();
  const shown = RISKS[risk] ?? { icon: "medium", key: "common.risk.unknown" };
  return (
    <span className={`risk risk--${risk in RISKS ? risk : "medium"}`}>
      <Icon name={shown.icon} />
      {t(shown.key)}
    </span>
  );
}

/** Whether what is shown is current, and since when not. With `short` in two words at most. */
export function LiveBadge({ link, short = false }: { link: Connection; short?: boolean }) {
  useLanguage();
  return (
    <span className={`live${link.kind === "live" ? "" : " live--off"}`} data-link={link.kind}>
      <i />
      {link.kind === "waiting" && !short ? <Waiting link={link} /> : t(connectionKey(link))}
    </span>
  );
}

function connectionKey(link: Connection): Key {
  switch (link.kind) {
    case "connecting":
      return "common.link.connecting";
    case "live":
      return "common.link.live";
    case "ended":
      return "common.link.ended";
    case "waiting":
      return "common.link.offline";
    case "refused":
      return link.code === "AUTHENTICATION_ERROR" ? "common.link.loggedOut" : "common.link.refused";
  }
}

function Waiting({ link }: { link: Extract<Connection, { kind: "waiting" }> }) {
  const left = Math.max(0, Math.ceil((Date.parse(link.retryAt) - useNow()) / 1000));
  return (
    <span title={t("common.link.lastAt", { time: clockText(link.lastAt ?? link.since) })}>
      {left > 0 ? t("common.link.waiting", { left: durationText(left * 1000) }) : t("common.link.reconnecting")}
    </span>
  );
}
