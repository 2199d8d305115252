// The inbox: everything that waits for a person, over all runs, and one of it in full beside the list.
import { useApprovals, useClient, useRuns } from "@runyard/react";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { taskTitle } from "../../app/run-title";
import { plural, t, useLanguage } from "../../i18n";
import { durationText, Elapsed, Empty, ErrorNote, Icon, Kbd, LiveBadge, PageHead, Risk, Segmented } from "../../ui";
import { useNow, useShortcut, visible } from "../../ui";
import { byRisk, fromList, isSnoozed, type Asked } from "./asked";
import { ApprovalDetail } from "./detail";
import { decidedText, Expiry } from "./facts";
import { Gone } from "./gone";
import { askIcon } from "./label";
import { LabelText } from "./panel";

type View = "open" | "all";

/** The page of approvals. */
export function ApprovalsPage() {
  useLanguage();
  const { id } = useParams({ strict: false });
  const search = useSearch({ strict: false });
  const view: View = search.view === "all" ? "all" : "open";
  const navigate = useNavigate();
  const { approvals, link, error, loading } = useApprovals();
  const now = useNow();
  const open = useMemo(() => approvals.map(fromList), [approvals]);
  const shown = useMemo(() => (view === "all" ? open : open.filter((asked) => !isSnoozed(asked, Date.now()))), [open, view]);
  const gone = useGone(open, !loading);
  const titles = useTitles();
  const groups = byRisk(shown);
  const order = [...groups.flatMap((group) => group.asked), ...gone].map((asked) => asked.id);
  const to = (next: string | undefined) => {
    if (next !== undefined) void navigate({ to: "/approvals/$id", params: { id: next }, search, replace: true });
  };
  const at = id === undefined ? -1 : order.indexOf(id);
  useShortcut("j", "approvals.keys.next", () => to(order[at + 1]));
  useShortcut("k", "approvals.keys.previous", () => to(order[Math.max(0, at - 1)]));
  const empty = !loading && shown.length === 0 && gone.length === 0;
  return (
    <>
      <PageHead
        title={t("approvals.title")}
        count={<Count shown={shown} now={now} />}
        end={
          <>
            <LiveBadge link={link} />
            <Segmented
              label={t("approvals.tab.label")}
              value={view}
              options={[
                { value: "open", label: t("approvals.tab.open") },
                { value: "all", label: t("approvals.tab.all") },
              ]}
              onChange={(next: View) => void navigate({ to: ".", search: next === "all" ? { view: "all" } : {}, replace: true })}
            />
          </>
        }
      />
      {error && <ErrorNote error={error} />}
      {empty && id === undefined ? (
        <Empty icon="inbox" title={t("approvals.emptyTitle")} command={'runyard run "Say what this project is" --agent demo'}>
          {view === "all" ? t("approvals.emptySnoozed") : t("approvals.empty")}
        </Empty>
      ) : (
        <div className={`inbox${id === undefined ? "" : " inbox--one"}`}>
          <section className="inbox__list" aria-label={t("approvals.title")}>
            <div className="grow scroll inbox__scroll">
              {groups.map((group, index) => (
                <section key={group.risk} aria-label={t(`approvals.group.${riskKey(group.risk)}`)}>
                  <div className="listhead">
                    <Risk risk={group.risk} />
                    <span className="count">{group.asked.length}</span>
                    {index === 0 && <span className="end">{t("approvals.group.waiting")}</span>}
                  </div>
                  {group.asked.map((asked) => (
                    <AskedRow
                      key={asked.id}
                      asked={asked}
                      title={titles.get(asked.runId)}
                      selected={asked.id === id}
                      snoozed={isSnoozed(asked, now)}
                    />
                  ))}
                </section>
              ))}
              {gone.length > 0 && (
                <section aria-label={t("approvals.group.gone")}>
                  <div className="listhead">{t("approvals.group.gone")}</div>
                  {gone.map((asked) => (
                    <GoneRow key={asked.id} asked={asked} selected={asked.id === id} />
                  ))}
                </section>
              )}
            </div>
            <Keys />
          </section>
          {id === undefined ? <Pick /> : <ApprovalDetail key={id} id={id} changed={gone.length} />}
        </div>
      )}
    </>
  );
}

function riskKey(risk: string): "high" | "medium" | "low" {
  return risk === "medium" || risk === "low" ? risk : "high";
}

function Count({ shown, now }: { shown: readonly Asked[]; now: number }) {
  if (shown.length === 0) return <>{t("approvals.count.none")}</>;
  const runs = new Set(shown.map((asked) => asked.runId)).size;
  const oldest = Math.min(...shown.map((asked) => (asked.askedAt === null ? now : Date.parse(asked.askedAt))));
  const time = durationText(now - oldest);
  if (shown.length === 1) return <>{t("approvals.count.one", { time })}</>;
  const onRuns = plural(runs, "approvals.count.runOne", "approvals.count.runs");
  return <>{t("approvals.count.some", { count: shown.length, runs: onRuns, time })}</>;
}

/** What the runs that wait are about, by run. */
function useTitles(): ReadonlyMap<string, string> {
  const { runs } = useRuns({ state: ["needs_approval"] });
  return useMemo(() => new Map(runs.map((run) => [run.id, taskTitle(run.task)])), [runs]);
}

/** Approvals that were listed while this page was open and are decided by now. */
function useGone(open: readonly Asked[], known: boolean): readonly Asked[] {
  const client = useClient();
  const gone = useMemo(
    () =>
      new Gone(async (id) => {
        const envelope = await client.call("approval_show", { id });
        if (envelope.ok) return { ok: true, asked: fromList(envelope.data.approval) };
        return envelope.error.code === "NOT_FOUND" ? { ok: true, asked: null } : { ok: false };
      }),
    [client],
  );
  useEffect(() => {
    if (known) gone.list(open.map((asked) => asked.id));
  }, [gone, open, known]);
  return useSyncExternalStore(gone.subscribe, gone.get);
}

function AskedRow({ asked, title, selected, snoozed }: {
  asked: Asked;
  title: string | undefined;
  selected: boolean;
  snoozed: boolean;
}) {
  return (
    <Link
      className={`apr${selected ? " is-sel" : ""}`}
      to="/approvals/$id"
      params={{ id: asked.id }}
      search={(before) => before}
      aria-current={selected || undefined}
      data-approval={asked.id}
    >
      <Icon name={askIcon(asked.ask)} />
      <span className="t trunc">
        <LabelText asked={asked} />
      </span>
      <span className="wait">{asked.askedAt !== null && <Elapsed since={asked.askedAt} />}</span>
      <span className="sub">
        <span className="trunc">{visible(title ?? asked.workspace)}</span>
        <span>&nbsp;· {visible(asked.agentId)}</span>
      </span>
      <span className="exp">{snoozed ? t("approvals.group.snoozed") : <Expiry asked={asked} />}</span>
    </Link>
  );
}

function GoneRow({ asked, selected }: { asked: Asked; selected: boolean }) {
  return (
    <Link
      className={`apr is-gone${selected ? " is-sel" : ""}`}
      to="/approvals/$id"
      params={{ id: asked.id }}
      search={(before) => before}
      aria-current={selected || undefined}
      data-approval={asked.id}
    >
      <Icon name={asked.state === "approved" ? "completed" : "cancelled"} />
      <span className="t trunc">
        <LabelText asked={asked} />
      </span>
      <span className="wait" />
      <span className="sub">
        <span className="trunc">
          {decidedText(asked)}
          {asked.decided?.reason && `: ${t("approvals.decided.reason", { reason: visible(asked.decided.reason) })}`}
        </span>
      </span>
    </Link>
  );
}

function Pick() {
  return (
    <section className="look look--pick">
      <p className="muted">{t("approvals.pick")}</p>
    </section>
  );
}

function Keys() {
  return (
    <footer className="keys" aria-hidden="true">
      <span>
        <Kbd>J</Kbd>
        <Kbd>K</Kbd> {t("approvals.keys.move")}
      </span>
      <span>
        <Kbd>R</Kbd> {t("approvals.keys.review")}
      </span>
      <span>
        <Kbd>A</Kbd> {t("approvals.keys.panel")}
      </span>
      <span>
        <Kbd>?</Kbd> {t("approvals.keys.all")}
      </span>
    </footer>
  );
}
