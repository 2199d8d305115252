// What waits for a person: the number in the title, a notification where somebody wants one, and nothing else.
import { useApprovals } from "@runyard/react";
import { useEffect, useRef } from "react";
import { plural, t } from "../i18n";
import { setWaiting } from "../ui/page";
import { announce } from "./announce";
import { preference } from "./preferences";

/** An approval that waits now: open, and nobody put it off. */
export interface Waiting {
  id: string;
  runId: string;
  title: string;
}

const NONE: readonly Waiting[] = [];

/** What waits for a decision now. One component of the page also says so. */
export function useAttention({ notify = false }: { notify?: boolean } = {}): readonly Waiting[] {
  const { approvals, loading } = useApprovals();
  const now = Date.now();
  const waiting = approvals?.filter((one) => one.state === "open" && !(one.snoozedUntil && Date.parse(one.snoozedUntil) > now)) ?? NONE;
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (!notify || loading) return;
    setWaiting(waiting.length);
    const before = known.current;
    known.current = new Set(waiting.map(({ id }) => id));
    // What was there when the page came is in the title; only what comes up later is said.
    if (before === null) return;
    const fresh = waiting.filter(({ id }) => !before.has(id));
    if (fresh.length === 0) return;
    announce(plural(waiting.length, "common.approvalWaiting", "common.approvalsWaiting"));
    if (document.hidden || !document.hasFocus()) notice(fresh);
  });
  return waiting;
}

function notice(fresh: readonly Waiting[]): void {
  if (!preference("notify") || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const [first] = fresh;
  if (first === undefined) return;
  const body = fresh.length === 1 ? first.title : t("common.notice.many", { count: fresh.length });
  // One tag for all of them: a later one takes the place of an earlier one.
  const shown = new Notification(t("common.notice.title"), { body, tag: "runyard-approval", silent: true });
  shown.onclick = () => {
    window.focus();
    location.assign(fresh.length === 1 ? `/approvals/${first.id}` : "/approvals");
  };
}
