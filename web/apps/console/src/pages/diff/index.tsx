// A run's changes under review. Looking, choosing and commenting change nothing; only the effect in the bar does.
import { useClient } from "@runyard/react";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { maybe, plural, t, useLanguage } from "../../i18n";
import { Button, Empty, ErrorNote, Icon, KeyValue, Segmented, useShortcut, visible } from "../../ui";
import type { ShownRun } from "../run/run-context";
import { useTakenBack } from "../run/taken-back";
import { fromEvents } from "../approvals/asked";
import { Revision, shortId, targetText } from "../approvals/facts";
import { AfterBar } from "./after";
import { AskingBar, Bar, filesText, Sum, unreadText } from "./bar";
import { FileList, type Goal } from "./file-list";
import type { FileChange } from "./model";
import { reviewOf } from "./reviews";
import { counts } from "./selection";
import type { DiffReview, DiffState } from "./store";
import type { Layout } from "./table";
import { TreePane } from "./tree-pane";
import { walk, type Stop } from "./walk";

const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
/** What became of changes that nobody chooses from any more. */
const SETTLED: ReadonlySet<string> = new Set(["approved", "applying", "applied", "undone"]);
const LAYOUT_NAME = "runyard.diffLayout";

/** The diff of a run. */
export function DiffTab({ run }: { run: ShownRun }) {
  useLanguage();
  const { view } = run.snapshot;
  if (view.review === null) return run.reading === null ? <NoDiff run={run} /> : <Reading />;
  const nothing = (view.review.diff.stats?.files ?? view.review.diff.paths.length) === 0;
  if (view.carries?.undo) return <UndoReview run={run} />;
  if (nothing) return <Empty icon="patch" title={t("diff.none.title")}>{t("diff.none.unchanged")}</Empty>;
  return <Review run={run} />;
}

/** Taking back has no content of its own to look at: it says which files go back. */
function UndoReview({ run }: { run: ShownRun }) {
  const { review, state } = useReview(run);
  const { review: entry, carries } = run.snapshot.view;
  if (entry === null || carries === null) return null;
  if (state.phase === "loading") return <Reading />;
  return (
    <div className="difftab">
      <div className="banner">
        <Icon name="eye" />
        <span>
          <b className="strong">{t("diff.banner")}</b> {t("diff.bannerUndo")}
        </span>
      </div>
      <Unread review={review} state={state} />
      <div className="undo scroll">
        <p className="prose">
          {t("diff.undoText", { files: filesText(entry.diff.stats?.files ?? entry.diff.paths.length) })}{" "}
          <Link to="/runs/$id/diff" params={{ id: carries.of }}>
            {t("diff.undoOf")}
          </Link>
        </p>
        <ul className="plist panel">
          {entry.diff.paths.map((path) => (
            <li key={path}>
              <code className="grow trunc">{visible(path)}</code>
            </li>
          ))}
        </ul>
        <About run={run} state={state} />
      </div>
      <Foot run={run} review={review} state={state} />
    </div>
  );
}

/** Nothing has its place before it is known how much there is: what came piece by piece would move the rest. */
function Reading() {
  return <p className="difftab__reading muted" role="status">{t("diff.loading")}</p>;
}

/** Says that what is shown may not be what the changes are by now. */
function Unread({ review, state }: { review: DiffReview; state: DiffState }) {
  const said = unreadText(state);
  if (state.error === null || said === undefined) return null;
  return (
    <div className="banner banner--warn" role="alert">
      <Icon name="high" />
      <span>
        {said} <span className="code">{state.error.code}</span>
      </span>
      <span className="grow" />
      <Button onClick={() => void review.load()}>{t("diff.again")}</Button>
    </div>
  );
}

function NoDiff({ run }: { run: ShownRun }) {
  const { state } = run.snapshot.view;
  return (
    <Empty icon="patch" title={t("diff.none.title")} command={`runyard diff ${run.id}`}>
      {t(TERMINAL.has(state) ? "diff.none.over" : "diff.none.working")}
    </Empty>
  );
}

function useReview(run: ShownRun): { review: DiffReview; state: DiffState } {
  const client = useClient();
  const review = useMemo(() => reviewOf(client, run.id), [client, run.id]);
  const state = useSyncExternalStore(review.subscribe, review.get);
  const { review: entry, carries } = run.snapshot.view;
  const digest = entry?.diff.digest ?? "";
  useEffect(() => void review.open(digest), [review, digest]);
  // What was decided is shown as it was decided, and not as somebody here had chosen it.
  const settled = entry !== null && SETTLED.has(entry.status);
  const selected = carries?.selection ?? (settled ? entry.selection : undefined);
  useEffect(() => {
    if (state.complete && (selected !== undefined || settled)) review.settle(selected);
  }, [review, selected, settled, state.complete]);
  return { review, state };
}

function storedLayout(): Layout {
  try {
    return localStorage.getItem(LAYOUT_NAME) === "split" ? "split" : "unified";
  } catch {
    return "unified";
  }
}

function useLayout(): [Layout, (layout: Layout) => void] {
  const [layout, setLayout] = useState(storedLayout);
  return [
    layout,
    (next) => {
      setLayout(next);
      try {
        localStorage.setItem(LAYOUT_NAME, next);
      } catch {
        // It is then unified again the next time.
      }
    },
  ];
}

function Review({ run }: { run: ShownRun }) {
  const { review, state } = useReview(run);
  const [layout, setLayout] = useLayout();
  const [treeShown, setTreeShown] = useState(false);
  const { stop, goal, go } = useStops(state.files);
  const { view } = run.snapshot;
  const carried = view.carries !== null;
  const over = TERMINAL.has(view.state);
  const choosable = !carried && !SETTLED.has(view.review?.status ?? "");
  const commentable = !carried && !over;
  const commented = useMemo(() => new Set(state.comments.map((comment) => comment.file)), [state.comments]);
  if (state.phase === "failed" && state.error) {
    const again = <Button onClick={() => void review.load()}>{t("diff.again")}</Button>;
    return <ErrorNote error={{ issues: [], ...state.error }} action={again} />;
  }
  if (state.phase === "loading") return <Reading />;
  return (
    <div className="difftab">
      <div className="banner">
        <Icon name="eye" />
        <span>
          <b className="strong">{t("diff.banner")}</b> {t("diff.bannerText", { apply: t("diff.applyWord") })}
        </span>
        <span className="grow" />
        <Segmented
          label={t("diff.layout.label")}
          value={layout}
          options={[
            { value: "unified", label: t("diff.layout.unified") },
            { value: "split", label: t("diff.layout.split") },
          ]}
          onChange={setLayout}
        />
      </div>
      <Unread review={review} state={state} />
      {state.anew && (
        <div className="banner banner--warn" role="alert">
          <Icon name="high" />
          <span>{state.anew.kept + state.anew.reset === 0 ? t("diff.anewPlain") : t("diff.anew", state.anew)}</span>
          <span className="grow" />
          <Button onClick={() => review.read()}>{t("diff.anewRead")}</Button>
        </div>
      )}
      <div className={`review${treeShown ? " review--tree" : ""}`}>
        <Button className="review__toggle" icon="folder" expanded={treeShown} onClick={() => setTreeShown(!treeShown)}>
          {t("diff.showTree")}
        </Button>
        <aside className="tree" aria-label={t("diff.files")}>
          <TreePane
            review={review}
            files={state.files}
            choices={state.choices}
            commented={commented}
            choosable={choosable}
            current={state.files[stop?.file ?? -1]?.id ?? null}
            onGo={(file) => go(file)}
          />
          <About run={run} state={state} />
        </aside>
        <FileList review={review} state={state} layout={layout} choosable={choosable} commentable={commentable} goal={goal} />
      </div>
      <Foot run={run} review={review} state={state} />
    </div>
  );
}

/** Where the reader is: from hunk to hunk with n and p, to a file from the tree or from the address. */
function useStops(files: readonly FileChange[]): { stop: Stop | null; goal: Goal | null; go: (file: FileChange) => void } {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const [stop, setStop] = useState<Stop | null>(null);
  const [goal, setGoal] = useState<Goal | null>(null);
  const to = (next: Stop | null): void => {
    const file = next === null ? undefined : files[next.file];
    if (next === null || file === undefined) return;
    setStop(next);
    setGoal((before) => ({ file: file.id, hunk: next.hunk, index: next.file, times: (before?.times ?? 0) + 1 }));
  };
  useShortcut("n", "diff.keys.next", () => to(walk(files, stop, 1)));
  useShortcut("p", "diff.keys.previous", () => to(walk(files, stop, -1)));
  const named = search.file;
  const known = named === undefined ? -1 : files.findIndex((file) => file.path === named || file.id === named);
  useEffect(() => {
    if (known >= 0 && stop?.file !== known) to({ file: known, hunk: 0 });
    // The address leads here; where the reader went since does not count.
  }, [known]);
  const go = (file: FileChange): void => {
    to({ file: files.indexOf(file), hunk: 0 });
    void navigate({ to: ".", search: (before) => ({ ...before, file: file.path }), replace: true });
  };
  return { stop, goal, go };
}

function About({ run, state }: { run: ShownRun; state: DiffState }) {
  const entry = run.snapshot.view.review;
  const taken = useTakenBack(run.id, run.snapshot.view);
  const { diff } = state;
  if (entry === null || diff === null) return null;
  const open = run.snapshot.view.open.find((one) => one.approvalId === entry.approvalId);
  const asked = open && fromEvents(open, run.id);
  const became = entry.status === "applied" && taken.kind === "done" ? "undone" : entry.status;
  const status = became === "applied" && taken.kind === "unknown" ? t("diff.status.wasApplied") : (maybe(`diff.status.${became}`) ?? became);
  return (
    <div className="tree__about">
      <KeyValue
        pairs={[
          [t("diff.base"), <Revision key="b" id={diff.base} />],
          [t("diff.target"), asked?.ask.kind === "apply" ? targetText(asked.ask) : <Revision key="t" id={diff.target} />],
          [t("diff.summary"), visible(diff.summary)],
          [
            t("diff.statusLabel"),
            <span key="s" data-apply-status={became}>
              {status}
              {entry.approvalId !== undefined && (
                <>
                  {" · "}
                  <Link to="/approvals/$id" params={{ id: entry.approvalId }} className="mono">
                    {shortId(entry.approvalId)}
                  </Link>
                </>
              )}
            </span>,
          ],
          [t("diff.commit"), entry.commit === undefined ? undefined : <Revision key="c" id={entry.commit} />],
        ]}
      />
      {diff.problems > 0 && <p className="muted t12">{plural(diff.problems, "diff.problemsOne", "diff.problems")}</p>}
    </div>
  );
}

function Foot({ run, review, state }: { run: ShownRun; review: DiffReview; state: DiffState }) {
  const { view } = run.snapshot;
  const entry = view.review;
  if (entry === null || state.diff === null) return null;
  const open = view.open.find((one) => one.approvalId === entry.approvalId);
  if (open !== undefined) {
    const facts = { onReject: view.onReject, sessionId: view.sessionId, carries: view.carries !== null };
    return <AskingBar asked={fromEvents(open, run.id)} facts={facts} past={run.reading !== null} state={state} review={review} fixed={facts.carries} />;
  }
  if (TERMINAL.has(view.state)) return <AfterBar run={{ id: run.id, view }} entry={entry} state={state} review={review} />;
  const counted = counts(state.choices, state.files, review.body);
  const applying = entry.status === "applying" || entry.status === "approved";
  const said = view.open.length > 0 ? "diff.over.deciding" : applying ? "diff.over.applying" : "diff.over.agent";
  return <Bar sum={<Sum counted={counted}>{t(said)}</Sum>} />;
}
