// @vitest-environment happy-dom
// C08: the head of a run never shows its past as if it were now, and says what is on its way.
import { createClient, foldRun, RunyardProvider, type Link, type RunEvent, type RunSnapshot } from "@runyard/react";
import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EdgeState } from "../src/app/nav";
import { EndCard } from "../src/pages/run/end-card";
import { RunHead } from "../src/pages/run/header";
import { Strip } from "../src/pages/run/rail";
import type { Reading } from "../src/pages/run/run-context";
import { readingOf, useReading } from "../src/pages/run/settled";
import { EffectDialog } from "../src/pages/system/effect-dialog";
import { effect } from "../src/ui";
import { STILL_MS } from "../src/ui/arming";

vi.mock("@tanstack/react-router", () => ({
  Link: ({ children, to, ...rest }: { children: ReactNode; to: string }) => <a href={to} {...rest}>{children}</a>,
  useNavigate: () => () => undefined,
  useRouter: () => ({ navigate: () => undefined }),
  useRouterState: () => false,
}));

const LIVE: Link = { kind: "live" };
const PERSON = { id: "ada", kind: "person" };
const meta = { action: "x", invocationId: "inv_1", surface: "react", durationMs: 1 };
const ok = (data: unknown) => Response.json({ ok: true, data, artifacts: [], logs: [], meta });

const event = (sequence: number, type: string, payload: unknown): RunEvent => ({
  sequence, id: `evt_${sequence}`, type, runId: "run_1", agentId: "demo", timestamp: "2026-11-16T08:00:00.000Z", v: 1, payload,
});
const policy = { sandbox: "workspace-write", network: "ask", approval: "ask", timeoutMs: 1, idleMs: 1 };
const EVENTS = [
  event(1, "run.created", {
    task: { kind: "text", text: "Say hello.", redacted: false }, actor: PERSON, workspace: { id: "wsp_1", label: "shop" },
    agentId: "demo", backendProfile: "demo", sessionId: "ses_1", executionPolicy: policy, onReject: "cancel",
  }),
  event(2, "run.planned", {
    edgeId: "local", workspacePolicy: "allowlist", runtimeProfile: "demo", approvalPolicy: { preset: "default", version: 1 },
  }),
  event(3, "run.accepted", { edgeId: "local" }),
  event(4, "run.preparing", { checks: ["workspace"] }),
  event(5, "run.started", { backendKind: "scripted", protocol: "script", checks: { workspace: "ok" } }),
];
const CANCELLED = [...EVENTS, event(6, "run.cancelled", { by: PERSON, reason: "Enough.", metrics: { wallMs: 1, activeMs: 1 } })];

const asked = { kind: "apply", digest: "d", stats: { files: 1, insertions: 1, deletions: 0 } };
const APPLYING = [
  ...EVENTS,
  event(6, "run.diff.ready", { base: "b", target: "t", paths: ["a"], summary: "1 file", digest: "d" }),
  event(7, "run.approval.requested", {
    approvalId: "apr_1", key: "review", request: asked, redacted: false, digest: "d", risk: "medium", reason: "r",
    workspace: { id: "wsp_1", label: "shop" }, actor: { id: "demo", kind: "agent", runId: "run_1" }, expiresAt: "2026-11-17T08:00:00.000Z",
  }),
  event(8, "run.approval.resolved", { approvalId: "apr_1", resolution: "approved", decidedBy: PERSON }),
  event(9, "run.applying", { approvalId: "apr_1", digest: "d" }),
];
const CANCELLING = [...APPLYING, event(10, "run.cancel.requested", { by: PERSON, reason: "Enough." })];
const ENDED = { by: PERSON, reason: "Enough.", metrics: { wallMs: 1, activeMs: 1 } };

const snapshot = (events: RunEvent[], link: Link = LIVE): RunSnapshot => ({ id: "run_1", link, rev: events.length, view: foldRun(events) });

let stored: number;
let showFails: boolean;
let edgesFail: boolean;
/** Answers the cancel. */
let cancelled: (response: Response) => void;

let client: ReturnType<typeof createClient>;

function wrapper({ children }: { children: ReactNode }) {
  return <RunyardProvider client={client}>{children}</RunyardProvider>;
}

beforeEach(() => {
  vi.useFakeTimers();
  [stored, showFails, edgesFail] = [5, false, false];
  client = createClient({
    auth: { kind: "token", token: "t" },
    fetch: async (input) => {
      const path = String(input);
      if (path.includes("run_show")) {
        if (showFails) throw new Error("nobody there");
        return ok({ run: { id: "run_1", state: "running", lastSequence: stored } });
      }
      if (path.includes("edge_list") && !edgesFail) return ok({ edges: [{ id: "local", connected: true, version: "1", activeRuns: 0 }] });
      if (path.includes("run_cancel")) return new Promise<Response>((answer) => (cancelled = answer));
      if (path.endsWith("/api/v1/actions")) {
        return ok({ actions: [{ name: "run_cancel", sideEffects: "write", requiresConfirmation: false }] });
      }
      throw new Error("nobody there");
    },
  });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const pass = (ms: number) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));
/** The button whose text begins so, the last one first: what stands in a window stands after what is below it. */
const button = (text: string): HTMLElement => {
  const found = [...document.querySelectorAll("button")].reverse().find((one) => one.textContent?.trim().startsWith(text));
  if (found === undefined) throw new Error(`There is no button "${text}".`);
  return found;
};

describe("how far a run was read", () => {
  it.each<[string, RunSnapshot, number | null, Reading | null]>([
    ["some of what the hub has is the past", snapshot(EVENTS), 100, { at: 5, of: 100 }],
    ["before the hub has said how much there is nobody knows", snapshot(EVENTS), null, { at: 5, of: null }],
    ["all that the hub has is now", snapshot(EVENTS), 5, null],
    ["more than it had is now", snapshot(EVENTS), 3, null],
    ["nothing comes after an end", snapshot(CANCELLED), null, null],
    ["a stream that ended brought all", snapshot(EVENTS, { kind: "ended" }), 100, null],
  ])("%s", (_, run, had, reading) => expect(readingOf(run, had)).toEqual(reading));

  it("is never taken for all because it takes long", async () => {
    stored = 100;
    const { result } = renderHook(() => useReading("run_1", snapshot(EVENTS)), { wrapper });
    await pass(60_000);
    expect(result.current.reading).toEqual({ at: 5, of: 100 });
  });

  it("is asked anew when the stream comes back, and where the hub did not say it", async () => {
    showFails = true;
    const { result, rerender } = renderHook(({ link }: { link: Link }) => useReading("run_1", snapshot(EVENTS, link)), {
      wrapper, initialProps: { link: LIVE as Link },
    });
    await pass(10);
    expect(result.current.reading).toEqual({ at: 5, of: null });
    showFails = false;
    await pass(5_000);
    expect(result.current).toEqual({ reading: null, drawn: "all" });
    stored = 100;
    rerender({ link: { kind: "waiting", since: "", retryAt: "" } });
    await pass(5_000);
    expect(result.current.reading).toBeNull();
    rerender({ link: LIVE });
    await pass(10);
    expect(result.current).toEqual({ reading: { at: 5, of: 100 }, drawn: "all" });
  });
});

describe("a run that was looked at before", () => {
  it("is not taken for read because of what the hub said then", async () => {
    const look = () => renderHook(() => useReading("run_1", snapshot(EVENTS)), { wrapper });
    const first = look();
    await pass(10);
    expect(first.result.current.reading).toBeNull();
    first.unmount();
    await pass(60_000);
    stored = 100;
    const again = look();
    expect(again.result.current.reading).toEqual({ at: 5, of: null });
    await pass(10);
    expect(again.result.current.reading).toEqual({ at: 5, of: 100 });
  });
});

describe("the head of a run", () => {
  const head = (events: RunEvent[], reading: Reading | null = null) => (
    <RunHead run={{ id: "run_1", snapshot: snapshot(events), reading }} />
  );
  const state = () => document.querySelector(".pill")?.getAttribute("data-state");
  const link = () => document.querySelector(".live")?.getAttribute("data-link");

  it("says how far its past was read, and offers nothing to do to it", async () => {
    const { rerender } = render(head(EVENTS, { at: 5, of: 100 }), { wrapper });
    expect([state(), link()]).toEqual(["unknown", "reading"]);
    expect(document.querySelector(".fact--last")?.textContent).toContain("Reading #5 of 100");
    for (const name of ["Message the agent", "Interrupt", "Cancel run…"]) {
      expect(button(name).getAttribute("title"), name).toMatch(/still being read/);
      expect(button(name).getAttribute("aria-disabled"), name).toBe("true");
    }
    rerender(head(EVENTS));
    expect([state(), link()]).toEqual(["running", "live"]);
    expect(button("Cancel run…").hasAttribute("aria-disabled")).toBe(false);
  });

  it("has no present step while its past is read", () => {
    const strip = (reading: Reading | null) => <Strip run={{ id: "run_1", snapshot: snapshot(EVENTS), reading }} />;
    const { rerender } = render(strip({ at: 5, of: 100 }));
    expect(document.querySelectorAll("[aria-current], .next")).toHaveLength(0);
    rerender(strip(null));
    expect(document.querySelectorAll("[aria-current]")).toHaveLength(1);
  });

  it("says that a cancel is on its way until its event is there, also when the window was closed", async () => {
    const { rerender } = render(head(EVENTS), { wrapper });
    fireEvent.click(button("Cancel run…"));
    expect(button("Keep it running")).toBeTruthy();
    await pass(STILL_MS);
    const effects = button("Cancel run run_1");
    fireEvent.pointerDown(effects);
    fireEvent.click(effects, { detail: 1 });
    await pass(10);
    expect(screen.queryByText("Keep it running")).toBeNull();
    fireEvent.click(screen.getByText("Close"));
    const marked = () => document.querySelector(".acts [aria-busy]");
    expect(marked()?.getAttribute("title")).toBe("The cancel is on its way.");
    cancelled(ok({}));
    await pass(10);
    expect(marked(), "the answer is not the event").not.toBeNull();
    rerender(head(CANCELLED));
    expect([state(), marked()]).toEqual(["cancelled", null]);
  });

  it("can be cancelled while something is applied, says what happens then, and takes it once", () => {
    const { rerender } = render(head(APPLYING), { wrapper });
    expect(state()).toBe("applying");
    for (const name of ["Message the agent", "Interrupt"]) expect(button(name).getAttribute("title"), name).toBe("What was approved is being applied.");
    fireEvent.click(button("Cancel run…"));
    expect(document.body.textContent).toContain("What was written by now is taken back, unless all of it is in place.");
    fireEvent.click(button("Keep it running"));
    rerender(head(CANCELLING));
    expect(button("Cancel run…").getAttribute("title")).toBe("The cancel is on its way.");
  });

  it("says why a cancel was refused after its window was closed", async () => {
    render(head(EVENTS), { wrapper });
    fireEvent.click(button("Cancel run…"));
    await pass(STILL_MS);
    const effects = button("Cancel run run_1");
    fireEvent.pointerDown(effects);
    fireEvent.click(effects, { detail: 1 });
    await pass(10);
    fireEvent.click(screen.getByText("Close"));
    const error = { code: "CONFLICT", message: "It is being applied.", issues: [], retryable: false };
    cancelled(Response.json({ ok: false, error, artifacts: [], logs: [], meta }, { status: 409 }));
    await pass(10);
    expect(document.body.textContent).toContain("CONFLICT");
    expect(button("Cancel run…").hasAttribute("aria-disabled")).toBe(false);
  });
});

it.each([
  ["was in place before it could be stopped", "stays there", [event(11, "run.applied", { approvalId: "apr_1", digest: "d" }), event(12, "run.cancelled", ENDED)]],
  ["was taken back", "was not applied", [event(11, "run.cancelled", ENDED)]],
])("the end of a run that was cancelled while it applied says that it %s", (_, words, ends) => {
  render(<EndCard run={{ id: "run_1", snapshot: snapshot([...CANCELLING, ...ends]), reading: null }} />, { wrapper });
  expect(document.body.textContent).toContain(words);
});

it("an effect that is on its way cannot be kept from happening by its window", () => {
  const dialog = (pending: boolean) => (
    <EffectDialog
      title="Close" label={effect("system.effect.closeSession", { id: "ses_1" })} keep="Keep the session" pending={pending}
      error={null} onEffect={() => undefined} onClose={() => undefined}
    >
      <p />
    </EffectDialog>
  );
  const { rerender } = render(dialog(false));
  expect(screen.queryByText("Keep the session")).not.toBeNull();
  rerender(dialog(true));
  expect(screen.queryByText("Keep the session")).toBeNull();
});

it("what the edges of a hub do is unknown while the hub is away, and where it does not say it", async () => {
  const { rerender, container } = render(<EdgeState live />, { wrapper });
  await pass(10);
  expect(container.textContent).toBe("local · online");
  rerender(<EdgeState live={false} />);
  expect(container.textContent).not.toContain("online");
  rerender(<EdgeState live />);
  edgesFail = true;
  await act(() => client.data("edge_list", {}).refresh());
  expect(container.textContent).not.toContain("online");
});
