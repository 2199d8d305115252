// @vitest-environment happy-dom
// Stores in components.
// clause: C08

import { act, cleanup, renderHook } from "@testing-library/react";
import { StrictMode, type ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createClient, RunyardProvider, useApprovals, useClient, useData, useDownload, useHub, useRun, useRuns,
} from "../src/index.js";

const meta = { action: "x", invocationId: "inv_1", surface: "react", durationMs: 1 };
const ok = (data: unknown) => Response.json({ ok: true, data, artifacts: [], logs: [], meta });
const created = {
  sequence: 1, id: "evt_1", type: "run.created", runId: "run_1", timestamp: "2026-11-16T08:00:00.000Z", v: 1,
  payload: {
    task: {
      kind: "text", text: "Hello", redacted: false,
    }, actor: { id: "ada", kind: "person" }, workspace: { id: "w", label: "shop" },
    agentId: "demo", backendProfile: "demo", sessionId: "ses_1", onReject: "cancel",
    executionPolicy: { sandbox: "none", network: "ask", approval: "ask", timeoutMs: 1, idleMs: 1 },
  },
};

let paths: string[];

const answers: [RegExp, () => Response][] = [
  [/runs\/run_1\/stream/, () => events(`id: 1\nevent: run.created\ndata: ${JSON.stringify(created)}\n\n`)],
  [/api\/v1\/stream/, () => events('event: changed\ndata: {"runs":[],"approvals":2}\n\n')],
  [
    /api\/v1\/session/, () => ok(
      { actor: { id: "ada", kind: "person" }, permissions: ["runs.read"], name: "hub", version: "1", hub: true },
    ),
  ],
  [
    /run_list/, () => ok(
      { runs: [{ id: "run_1", state: "running", workspace: { id: "w", label: "shop" }, createdAt: "2026", task: "x" }] },
    ),
  ],
  [/approval_list/, () => ok({ approvals: [{ id: "apr_1", runId: "run_1", request: { kind: "shell" } }] })],
  [/session_list/, () => ok({ sessions: [] })],
  [/version_show/, () => ok({ version: "1" })],
  [/content/, () => new Response("file")],
];

/** A stream that stays open. */
function events(text: string): Response {
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(text)) });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

beforeEach(() => {
  paths = [];
});
afterEach(cleanup);

const settle = () => act(() => new Promise<void>((resolve) => setTimeout(resolve, 60)));

function render<T>(hook: () => T) {
  const fetched: typeof fetch = (input) => {
    paths.push(String(input));
    const found = answers.find(([path]) => path.test(String(input)));
    return found === undefined ? Promise.reject(new Error("nobody there")) : Promise.resolve(found[1]());
  };
  const client = createClient({ fetch: fetched });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <StrictMode>
      <RunyardProvider client={client}>{children}</RunyardProvider>
    </StrictMode>
  );
  return renderHook(hook, { wrapper });
}

const count = (path: RegExp) => paths.filter((one) => path.test(one)).length;

describe("in strict mode", () => {
  it("c08 a run is followed by one stream, and closed when the component goes", async () => {
    const { result, unmount } = render(() => [useRun("run_1"), useRun("run_1"), useClient()] as const);
    await settle();
    expect(result.current[0]).toMatchObject({ link: { kind: "live" }, view: { state: "created", lastSequence: 1 } });
    expect(result.current[0]).toBe(result.current[1]);
    expect(count(/runs\/run_1\/stream/)).toBe(1);
    const store = result.current[2].run("run_1");
    unmount();
    await act(() => new Promise((resolve) => setTimeout(resolve, 300)));
    expect(store.isStarted).toBe(false);
  });

  it("lists, answers and the hub are there, each asked for by one request", async () => {
    const { result } = render(() => ({
      runs: useRuns({ state: "running" }),
      approvals: useApprovals(),
      version: useData("version_show", {}),
      none: useData("run_show", null),
      hub: useHub(),
    }));
    await settle();
    const { runs, approvals, version, none, hub } = result.current;
    expect(runs).toMatchObject({ runs: [{ id: "run_1" }], next: null, loading: false, link: { kind: "live" } });
    expect(approvals.approvals.map((one) => one.id)).toEqual(["apr_1"]);
    expect([version.data, none.data, none.loading]).toEqual([{ version: "1" }, undefined, false]);
    expect([hub.actor?.id, hub.openApprovals, hub.can("runs.read"), hub.can("runs.write")]).toEqual(["ada", 2, true, false]);
    expect([count(/api\/v1\/stream/), count(/version_show/), count(/run_show/)]).toEqual([1, 1, 0]);
  });

  it("what a hub says of itself is followed on its stream, and an answer of any other action is not", async () => {
    const other = render(() => useData("version_show", {}));
    await settle();
    expect(count(/api\/v1\/stream/)).toBe(0);
    other.unmount();
    const { result } = render(() => useData("session_list", {}));
    await settle();
    expect([result.current.data, count(/api\/v1\/stream/)]).toEqual([{ sessions: [] }, 1]);
  });

  it("a file is read when somebody wants it", async () => {
    const { result } = render(() => useDownload("run_1", "art_1"));
    await settle();
    expect([result.current.status, count(/content/)]).toEqual(["idle", 0]);
    await act(async () => void (await result.current.download()));
    expect([result.current.status, await result.current.blob?.text()]).toEqual(["ok", "file"]);
  });
});

it("without a provider a hook says what is missing", () => {
  expect(() => renderHook(() => useHub())).toThrow("There is no RunyardProvider above this component.");
});
