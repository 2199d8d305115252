// Times and durations. One clock ticks for the whole page. Units are not translated, as payload is not.
import { useSyncExternalStore } from "react";
import { currentLanguage, t, useLanguage } from "../i18n";

const TICK_MS = 1000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setTimeout> | undefined;

function tick(): void {
  now = Date.now();
  timer = setTimeout(tick, TICK_MS - (now % TICK_MS));
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    // While nobody listened the clock stood; React looks again right after this.
    now = Date.now();
    timer = setTimeout(tick, TICK_MS - (now % TICK_MS));
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
  };
}

/** Between two ticks everybody sees the same second, also who looks before anybody listens. */
function current(): number {
  return now;
}

/** The time in milliseconds, anew each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, current, current);
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** `14:06:28` in the reader's own time zone. */
export function clockText(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time) ? at : CLOCK.format(time);
}

function locale(): string {
  return currentLanguage() === "zh" ? "zh-CN" : "en-GB";
}

/** Date, time and time zone in full. */
export function absoluteText(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time) ? at : new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "long" }).format(time);
}

/** The time of day where it is today, the day otherwise. */
export function dayText(at: string, today: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  if (time.toDateString() === new Date(today).toDateString()) return CLOCK.format(time);
  const year = time.getFullYear() === new Date(today).getFullYear() ? {} : { year: "numeric" as const };
  return new Intl.DateTimeFormat(locale(), { day: "numeric", month: "short", ...year }).format(time);
}

/** A time of day with the whole date as its title. With `day`, the date stands where it is not today. */
export function Clock({ at, day = false }: { at: string; day?: boolean }) {
  useLanguage();
  return (
    <time dateTime={at} title={absoluteText(at)}>
      {day ? dayText(at, Date.now()) : clockText(at)}
    </time>
  );
}

/** How long ago, in one unit. */
export function agoText(at: string, since: number): string {
  const past = since - Date.parse(at);
  if (Number.isNaN(past)) return at;
  return past < 1000 ? t("common.justNow") : t("common.ago", { time: roughText(past) });
}

function roughText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 600) return durationText(ms);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** How long ago something was, ticking. */
export function Ago({ at }: { at: string }) {
  useLanguage();
  const since = useNow();
  return (
    <time dateTime={at} title={absoluteText(at)}>
      {agoText(at, since)}
    </time>
  );
}

const two = (value: number): string => String(value).padStart(2, "0");

/** `0.3s`, `51s`, `3m 10s`, `1h 05m`, `2d 03h`. Tenths only where asked for and below ten seconds. */
export function durationText(ms: number, tenths = false): string {
  const whole = Math.max(0, Math.floor(ms / 1000));
  if (tenths && ms < 9950) return `${(Math.max(0, ms) / 1000).toFixed(1)}s`;
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h ${two(Math.floor(whole / 60) % 60)}m`;
  return `${Math.floor(whole / 86_400)}d ${two(Math.floor(whole / 3600) % 24)}h`;
}

/** The time since something began, ticking. */
export function Elapsed({ since }: { since: string }) {
  return <span className="num">{durationText(useNow() - Date.parse(since))}</span>;
}

/** A length of time that may be less than a second. */
export function spanText(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : durationText(ms);
}
