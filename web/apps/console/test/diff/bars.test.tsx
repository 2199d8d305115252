// @vitest-environment happy-dom
// C22: below the diff stands what is true by now, and an effect only where it is known to be one.
import { act, cleanup, renderHook, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { fromEvents } from "../../src/pages/approvals/asked";
import { useDecide } from "../../src/pages/approvals/decide";
import { ApprovalPanel } from "../../src/pages/approvals/panel";
import { DiffTab } from "../../src/pages/diff";
import { WhatIsLeft } from "../../src/pages/run/end-card";
import { undos } from "../../src/pages/run/taken-back";
import { before, hub, log, SCENE_MS_MAX, settle, show, shownRun, told, type Answers } from "../approvals/scene";
import { file } from "./files";

vi.setConfig({ testTimeout: SCENE_MS_MAX });
afterEach(cleanup);

type Run = ReturnType<typeof shownRun>;
const button = (text: RegExp) => screen.queryByText(text)?.closest("button") ?? null;
/** Why a button cannot be pressed, as it says itself. */
const why = (text: RegExp) => button(text)?.title ?? "";

/** Draws the diff of a run, whose content the hub has as the run's events name it. */
async function open(run: Run, answers: Answers) {
  const digest = run.view.review?.diff.digest;
  const diff = { base: "b", target: "t", digest, summary: "", files: 1, insertions: 1, deletions: 0, protected: 0, problems: 0, applyStatus: "proposed" };
  const approval = run.view.approvals.length > 1 ? told(run.view, 1) : undefined;
  const drawn = hub({ approval_show: () => ({ data: { approval } }), run_diff: () => ({ data: { diff, files: [file("a", { hunks: 0 })] } }), ...answers });
  await show(drawn.client, <DiffTab run={run} />);
  return drawn;
}

/** The same run under other names: what is seen of runs and approvals is remembered by them. */
function renamed(events: ReturnType<typeof log>, name: string) {
  const text = JSON.stringify(events).replaceAll(events[0]?.runId ?? "", `run_${name.repeat(16)}`).replaceAll("apr_01", `apr_${name}`);
  return shownRun(JSON.parse(text));
}

describe("while the run asks", () => {
  const asking = log("completed-with-apply", { type: "run.approval.requested", nth: 2 });

  it("what somebody else decided is told and leaves no effect", async () => {
    const run = renamed(asking, "a1");
    let approval = told(run.view, 1);
    const { client } = await open(run, { approval_show: () => ({ data: { approval } }), approval_resolve: () => ({ code: "CONFLICT" }) });
    expect(button(/^Apply 1 file/)).not.toBeNull();
    const entry = run.view.open[0] ?? expect.fail("nothing asked");
    const { result } = renderHook(() => useDecide(fromEvents(entry, run.id)), { wrapper: before(client) });
    approval = { ...approval, state: "approved", decidedBy: { id: "bob", kind: "person" } };
    await act(() => result.current.decide({ says: "approve", scope: "once" }));
    await settle();
    expect(button(/^Apply 1 file/)).toBeNull();
    expect(screen.getByText(/Approved by bob/)).toBeTruthy();
  });

  it("nothing is offered that the hub calls decided, or has not been asked about", async () => {
    const run = renamed(asking, "a3");
    await open(run, { approval_show: undefined });
    expect(why(/^Apply 1 file/)).toBe("Loading…");
    cleanup();
    await open(run, { approval_show: () => ({ data: { approval: told(run.view, 1, { state: "expired" }) } }) });
    expect(button(/^Apply 1 file/)).toBeNull();
    expect(screen.getByText(/Expired/)).toBeTruthy();
  });

  it("what a rule denies by now is not offered, and why is said", async () => {
    const run = renamed(asking, "a7");
    await open(run, { approval_show: () => ({ data: { approval: told(run.view, 1, { denied: "No changes on a Friday." }) } }) });
    expect(why(/^Apply 1 file/)).toContain("No changes on a Friday.");
    expect(why(/^Reject with/)).toBe("");
  });

  it("nothing is offered while the run's log is still read, and nothing is called unchanged", async () => {
    const run = renamed(asking, "a4");
    await open({ ...run, reading: { at: 37, of: 41 } }, {});
    expect(why(/^Apply 1 file/)).toBe("The run is still being read: what is shown is its past.");
    expect(why(/^Reject with/)).toBe("The run is still being read: what is shown is its past.");
    cleanup();
    await open({ ...renamed(asking.slice(0, 8), "a5"), reading: { at: 8, of: 41 } }, {});
    expect(screen.getByText("Reading what changed…")).toBeTruthy();
  });

  it("who chose a part before a reload is not offered the whole beside the timeline", async () => {
    const run = renamed(asking, "a6");
    const { client } = hub({ approval_show: () => ({ data: { approval: told(run.view, 1) } }) });
    const keep = (digest: string | undefined) =>
      localStorage.setItem(`runyard.review.${run.id}`, JSON.stringify({ digest, viewed: [], comments: [], choices: [["a", "none"]] }));
    keep(run.view.review?.diff.digest);
    await show(client, <ApprovalPanel run={run} />);
    expect(why(/^Apply 1 file/)).toContain("In the diff a part was chosen");
    cleanup();
    keep("of other changes");
    await show(client, <ApprovalPanel run={run} />);
    expect(why(/^Apply 1 file/)).not.toContain("In the diff a part was chosen");
  });

  it("changes that could not be read again are not called current", async () => {
    const run = renamed(asking, "a2");
    let fails = false;
    const digest = run.view.review?.diff.digest;
    const diff = { base: "b", target: "t", digest, summary: "", files: 1, insertions: 1, deletions: 0, protected: 0, problems: 0, applyStatus: "proposed" };
    const page = () => (fails ? { code: "INTERNAL_ERROR" } : { data: { diff, files: [file("a", { hunks: 0 })] } });
    await open(run, { run_diff: page });
    cleanup();
    fails = true;
    const other = { ...run.view.review, diff: { ...run.view.review?.diff, digest: "another" } } as NonNullable<Run["view"]["review"]>;
    await open({ ...run, snapshot: { ...run.snapshot, view: { ...run.view, review: other } } }, {});
    const said = "The changes could not be read again: they may be others by now.";
    expect(screen.getByRole("alert").textContent).toContain(`${said} INTERNAL_ERROR`);
    expect(why(/^Apply 1 file/)).toBe(said);
  });
});

describe("after the end", () => {
  const applied = log("completed-with-apply");

  it("nobody looks for who took back what was never applied", async () => {
    for (const [status, reads] of [["rejected", 0], ["applied", 1]] as const) {
      const { client, calls } = hub({});
      const run = shownRun(applied);
      const review = { ...(run.view.review ?? expect.fail("no diff")), status };
      await show(client, <WhatIsLeft run={{ ...run, snapshot: { ...run.snapshot, view: { ...run.view, review } } }} />);
      expect(calls.filter(({ action }) => action === "run_list"), status).toHaveLength(reads);
      cleanup();
    }
  });

  it("all later runs are looked through for who took it back", async () => {
    const run = renamed(applied, "b4");
    const made = { state: "completed", lastSequence: 1, createdAt: "2999-01-01T00:00:00Z", agentId: "demo", workspace: { id: "w", label: "w" } };
    let pages = 0;
    const page = () => {
      pages += 1;
      if (pages <= 12) return { data: { runs: [{ ...made, id: `run_${pages}`, task: "Another" }], next: `run_${pages}` } };
      return { data: { runs: [{ ...made, id: "run_last", task: `Take back the changes of ${run.id}` }] } };
    };
    await open(run, { run_list: page });
    await settle();
    expect(screen.getByText("What was applied was taken back.")).toBeTruthy();
  });

  it("nobody undoes what may have been taken back already", async () => {
    await open(renamed(applied, "b1"), {});
    expect(screen.getByText("The changes were brought to your files. Reading whether they were taken back since…")).toBeTruthy();
    expect(document.querySelector("[data-apply-status]")?.textContent).toMatch(/^was applied/);
    expect(why(/^Undo/)).toBe("Reading whether they were taken back since…");
  });

  it("says where that could not be read, and how to try again", async () => {
    let fails = true;
    const run = renamed(applied, "b2");
    await open(run, { run_list: () => (fails ? { code: "INTERNAL_ERROR" } : { data: { runs: [] } }) });
    expect(screen.queryByText("The changes are in your files.")).toBeNull();
    expect(why(/^Undo/)).toBe("Whether they were taken back since could not be read.");
    fails = false;
    act(() => button(/^Try again/)?.click());
    await settle();
    expect(screen.getByText("The changes are in your files.")).toBeTruthy();
  });

  it("an undo that was started is shown, and not offered once more", async () => {
    const run = renamed(applied, "b3");
    await open(run, { run_list: () => ({ data: { runs: [] } }) });
    expect(button(/^Undo/)).not.toBeNull();
    act(() => undos.led(run.id, "run_undoing"));
    expect(button(/^Undo/)).toBeNull();
    expect(screen.getByText("Open the new run").getAttribute("href")).toContain("run_undoing");
  });
});
