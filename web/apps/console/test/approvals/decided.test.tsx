// @vitest-environment happy-dom
// C12: what somebody else decided is told, and offers no effect any more.
import { act, cleanup, fireEvent, renderHook, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { fromEvents, fromList, later } from "../../src/pages/approvals/asked";
import { useDecide, useNewest } from "../../src/pages/approvals/decide";
import { hear, useHeard } from "../../src/pages/approvals/heard";
import { ApprovalDetail } from "../../src/pages/approvals/detail";
import { ApprovalPanel } from "../../src/pages/approvals/panel";
import { Transcript } from "../../src/pages/run/transcript";
import { askText } from "../../src/pages/run/words";
import { before, hub, log, SCENE_MS_MAX, settle, show, shownRun, told } from "./scene";

vi.setConfig({ testTimeout: SCENE_MS_MAX });
afterEach(cleanup);

const REQUESTED = "run.approval.requested";
const by = (id: string) => ({ decidedBy: { id, kind: "person" } });
const answered = (approval: unknown) => () => ({ data: { approval } });
const effects = (name: RegExp) => screen.queryAllByRole("button", { name });

describe("what two sides say of an approval", () => {
  const events = log("approved-for-the-run");
  const open = shownRun(log("approved-for-the-run", { type: REQUESTED, nth: 1 }));
  const entry = (run: typeof open) => run.view.approvals[0] ?? expect.fail("nothing asked");
  const streamed = fromEvents(entry(open), open.id);
  const decided = fromEvents(entry(shownRun(events)), open.id);
  const hubs = (more: object) => fromList({ ...(told(open.view, 0) as Parameters<typeof fromList>[0]), ...more });

  it("is decided where one of them says so, and never open again", () => {
    const rejected = hubs({ state: "rejected", ...by("bob"), decisionReason: "Not now" });
    expect(later(streamed, rejected)).toMatchObject({ state: "rejected", decided: { by: "bob", reason: "Not now" }, sequence: 8 });
    expect(later(decided, hubs({}))).toBe(decided);
    expect(later(decided, rejected)).toBe(decided);
  });

  it("is not opened again by an answer that was overtaken", () => {
    const rejected = hubs({ id: "apr_overtaken", state: "rejected", ...by("bob") });
    hear(rejected);
    hear(hubs({ id: "apr_overtaken" }));
    expect(renderHook(useHeard).result.current.get("apr_overtaken")).toBe(rejected);
  });

  it("is what the run's events say as long as nobody says more", () => {
    expect(later(streamed, undefined)).toBe(streamed);
    expect(later(streamed, hubs({}))).toBe(streamed);
  });
});

describe("a decision that comes too late", () => {
  it("is told with who decided, however long the stream is held, and leaves no effect", async () => {
    const run = shownRun(log("approved-for-the-run", { type: REQUESTED, nth: 1 }));
    let approval = told(run.view, 0);
    const { client } = hub({ approval_resolve: () => ({ code: "CONFLICT" }), approval_show: () => ({ data: { approval } }) });
    await show(client, <ApprovalPanel run={run} />);
    expect(effects(/^Run shell/)).toHaveLength(1);
    const entry = run.view.approvals[0] ?? expect.fail("nothing asked");
    const { result } = renderHook(() => useDecide(fromEvents(entry, run.id)), { wrapper: before(client) });
    approval = { ...approval, state: "rejected", ...by("bob"), decisionReason: "Not on a Friday." };
    await act(() => result.current.decide({ says: "approve", scope: "once" }));
    await settle();
    expect(effects(/^Run shell/)).toHaveLength(0);
    expect(screen.getByText(/Rejected by bob/).textContent).toContain("Not on a Friday.");
    expect(screen.getByText("It was over before your decision arrived, which did not count.")).toBeTruthy();
    expect(screen.getByText("No approvals wait")).toBeTruthy();
  });

  it("shows the new content only where there is some, and else why the hub refused", async () => {
    const run = shownRun(log("two-open"));
    const entry = run.view.open[0] ?? expect.fail("nothing asked");
    const { client } = hub({ approval_resolve: () => ({ code: "CONFLICT" }), approval_show: () => ({ code: "CONNECTION_FAILED" }) });
    const { result } = renderHook(() => [useDecide(fromEvents(entry, run.id)), useNewest(fromEvents(entry, run.id))] as const, { wrapper: before(client) });
    await act(() => result.current[0].decide({ says: "approve", scope: "once" }));
    expect(result.current[0].stage).toMatchObject({ kind: "refused", refusal: { code: "CONFLICT" } });
    expect(result.current[1].digest).toBe(entry.digest);
  });
});

describe("an approval that the hub calls decided", () => {
  it("is not open in the inbox while its run's log is still read", async () => {
    const events = log("parked", { type: REQUESTED, nth: 1 });
    const run = shownRun(events);
    const approval = told(run.view, 0, { state: "approved", ...by("bob") });
    const { client } = hub({ approval_show: answered(approval) }, events);
    await show(client, <ApprovalDetail id={String(approval["id"])} changed={0} />);
    expect(await screen.findByText("#" + String(run.view.approvals[0]?.sequence))).toBeTruthy();
    expect(screen.getByText(/Approved by bob/)).toBeTruthy();
    expect(screen.queryByText("Reject with a reason…")).toBeNull();
  });

  it("is offered on its run's page only when the hub was asked", async () => {
    const run = shownRun(log("withdrawn", { type: REQUESTED, nth: 1 }));
    await show(hub({}).client, <ApprovalPanel run={run} />);
    expect(effects(/^Run shell/)[0]?.title).toBe("Loading…");
  });

  it("is not offered while its run's log is still read", async () => {
    const run = shownRun(log("snoozed", { type: REQUESTED, nth: 1 }));
    const { client } = hub({ approval_show: answered(told(run.view, 0)) });
    await show(client, <ApprovalPanel run={{ ...run, reading: { at: 8, of: 20 } }} />);
    const reason = "The run is still being read: what is shown is its past.";
    expect(screen.getByText("Reject with a reason…").closest("button")?.title).toBe(reason);
    expect(document.querySelector<HTMLElement>(".ask .push")?.title).toBe(reason);
    expect(screen.queryByText("1 approval waits")).toBeNull();
    fireEvent.keyDown(screen.getByText("Decide later"), { key: "Enter" });
    expect(screen.getAllByRole("menuitem").map((item) => item.getAttribute("aria-disabled"))).toEqual(["true", "true", "true"]);
  });

  it("is not open on its run's page either", async () => {
    const run = shownRun(log("rejected", { type: REQUESTED, nth: 1 }));
    const { client } = hub({ approval_show: answered(told(run.view, 0, { state: "expired" })) });
    await show(client, <ApprovalPanel run={run} />);
    expect(screen.getByText(/Expired/)).toBeTruthy();
    expect(screen.queryByText("Reject with a reason…")).toBeNull();
  });
});

describe("a question", () => {
  it("is rejected under one word, and named by what it asks", async () => {
    const run = shownRun(log("question-answered", { type: REQUESTED, nth: 1 }));
    const approval = told(run.view, 0);
    await show(hub({ approval_show: answered(approval) }).client, <ApprovalPanel run={run} />);
    expect(screen.getByText("Reject with a reason…")).toBeTruthy();
    expect(screen.getByText(/^Rejecting/)).toBeTruthy();
    expect(document.body.textContent).not.toMatch(/declin/i);
    const { prompt } = approval["request"] as { prompt: string };
    expect(askText(approval["request"]).text).toContain(prompt);
  });
});

describe("what is not there", () => {
  it("an approval teaches how to see those that are", async () => {
    const { client } = hub({ approval_show: () => ({ code: "NOT_FOUND" }) });
    await show(client, <ApprovalDetail id="apr_none" changed={0} />);
    expect(screen.getByText("runyard approvals list")).toBeTruthy();
  });

  it("a transcript teaches how to see the events", async () => {
    await show(hub({}).client, <Transcript run={{ ...shownRun([]), id: "run_1" }} />);
    expect(screen.getByText("runyard runs events run_1")).toBeTruthy();
  });
});
