// The runs as a table; on a narrow window the same rows are cards.
import { Link, useRouter } from "@tanstack/react-router";
import type { RunSummary as Run } from "@runyard/react";
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { taskTitle } from "../../app/run-title";
import { plural, t } from "../../i18n";
import { Button, Clock, Cost, Elapsed, spanText, StatePill, useShortcut, visible as spelled } from "../../ui";
import { hasEnded } from "./filter";
import { Now } from "./now";

const SKELETONS = 8;

/** The runs, newest first. New ones wait above while somebody reads further down. */
export function RunsTable({ runs, onMore, loading }: { runs: readonly Run[]; onMore: (() => void) | undefined; loading: boolean }) {
  const scroller = useRef<HTMLDivElement>(null);
  const { visible, held, show } = useHeldBack(runs, scroller);
  useRowKeys(visible, scroller);
  return (
    <div className="listing">
      <div className="scroll" ref={scroller}>
        {held > 0 && (
          <div className="newbar">
            <Button icon="up" onClick={show}>
              {plural(held, "runs.oneNew", "runs.manyNew")}
            </Button>
          </div>
        )}
        <table className="runs" aria-label={t("runs.title")}>
          <Head />
          <tbody>
            {visible.map((run) => (
              <Row key={run.id} run={run} />
            ))}
          </tbody>
        </table>
        {onMore && (
          <div className="more-rows">
            <Button onClick={onMore} pending={loading}>
              {t("runs.older")}
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}

function Head() {
  return (
    <>
      <colgroup>
        <col className="col-state" />
        <col />
        <col className="col-workspace" />
        <col className="col-now" />
        <col className="col-last" />
        <col className="col-elapsed" />
        <col className="col-cost" />
      </colgroup>
      <thead>
        <tr>
          <th scope="col">{t("runs.column.state")}</th>
          <th scope="col">{t("runs.column.run")}</th>
          <th scope="col">{t("runs.column.workspace")}</th>
          <th scope="col">{t("runs.column.now")}</th>
          <th scope="col" className="r">{t("runs.column.last")}</th>
          <th scope="col" className="r">{t("runs.column.elapsed")}</th>
          <th scope="col" className="r">{t("runs.column.cost")}</th>
        </tr>
      </thead>
    </>
  );
}

function Row({ run }: { run: Run }) {
  const title = taskTitle(run.task) || run.id;
  return (
    <tr data-run={run.id} data-state={run.state}>
      <td>
        <StatePill state={run.state} />
      </td>
      <td>
        <Link className="t trunc" to="/runs/$id" params={{ id: run.id }} title={title}>
          {title}
        </Link>
        <span className="muted trunc runs__sub">
          <span className="mono">{shortId(run.id)}</span> · {spelled(run.agentId)}
          <span className="narrow-only"> · {spelled(run.workspace.label)}</span>
        </span>
      </td>
      <td className="trunc" title={spelled(run.workspace.label)}>
        {spelled(run.workspace.label)}
      </td>
      <td className="trunc">
        <Now run={run} />
      </td>
      <td className="r">
        <Clock at={run.lastEventAt} day />
      </td>
      <td className="r">{hasEnded(run.state) ? spanText(run.metrics.wallMs) : <Elapsed since={run.createdAt} />}</td>
      <td className="r">
        <Cost usd={run.metrics.costUsd} />
      </td>
    </tr>
  );
}

/** Enough of an id to tell runs apart at a glance: its end, as its beginning is the time. */
export function shortId(id: string): string {
  return id.length > 18 ? `run_…${id.slice(-6)}` : id;
}

/** Rows of the same height while the first answer is on its way. */
export function SkeletonTable() {
  return (
    <div className="listing" aria-busy="true">
      <span className="sr">{t("common.loading")}</span>
      <table className="runs runs--skeleton" aria-hidden="true">
        <Head />
        <tbody>
          {Array.from({ length: SKELETONS }, (_, index) => (
            <tr key={index}>
              {Array.from({ length: 7 }, (_, column) => (
                <td key={column}>
                  <span className="bone" />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Runs that came while the list is scrolled down are counted and shown when the reader is at the top again. */
function useHeldBack(runs: readonly Run[], scroller: RefObject<HTMLDivElement | null>) {
  const [top, setTop] = useState(true);
  const newest = useRef<string | undefined>(undefined);
  useEffect(() => {
    const measure = () => setTop((scroller.current?.scrollTop ?? 0) < 4 && window.scrollY < 4);
    const element = scroller.current;
    element?.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("scroll", measure, { passive: true });
    return () => {
      element?.removeEventListener("scroll", measure);
      window.removeEventListener("scroll", measure);
    };
  }, [scroller]);
  const known = top ? 0 : Math.max(0, runs.findIndex(({ id }) => id === newest.current));
  useLayoutEffect(() => {
    if (top) newest.current = runs[0]?.id;
  });
  const show = () => {
    scroller.current?.scrollTo({ top: 0 });
    window.scrollTo({ top: 0 });
    setTop(true);
  };
  return { visible: runs.slice(known), held: known, show };
}

/** j and k go from run to run, Enter and o open one. The focus goes along, so that it is read out. */
function useRowKeys(runs: readonly Run[], scroller: RefObject<HTMLDivElement | null>): void {
  const router = useRouter();
  const row = () => document.activeElement?.closest<HTMLElement>("tr[data-run]")?.dataset["run"];
  const move = (step: number) => {
    const at = runs.findIndex(({ id }) => id === row());
    const next = runs[at === -1 ? 0 : Math.min(runs.length - 1, Math.max(0, at + step))];
    if (next) scroller.current?.querySelector<HTMLElement>(`tr[data-run="${CSS.escape(next.id)}"] a`)?.focus();
  };
  const open = () => {
    const id = row() ?? runs[0]?.id;
    if (id) void router.navigate({ to: "/runs/$id", params: { id } });
  };
  useShortcut("j", "runs.keys.next", () => move(1));
  useShortcut("k", "runs.keys.previous", () => move(-1));
  useShortcut("o", "runs.keys.open", open);
}
