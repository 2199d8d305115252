// @vitest-environment happy-dom
// An action in a component: nothing that needs a yes is sent without one.
// clause: A04, A21

import { act, cleanup, renderHook } from "@testing-library/react";
import { StrictMode, useEffect, type ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { createClient, RunyardProvider, useAction, type AnyActions, type Confirm, type HubActions } from "../src/index.js";

interface ShopActions {
  order_list: { input: Record<string, never>; output: string[] };
  order_create: { input: { item: string }; output: { id: string } };
  order_delete: { input: { id: string }; output: null };
  order_empty: { input: { id: string }; output: null };
  order_publish: { input: { id: string }; output: null };
}

const ACTIONS = [
  { name: "order_list", sideEffects: "read", requiresConfirmation: false },
  { name: "order_create", sideEffects: "write", requiresConfirmation: false },
  { name: "order_delete", sideEffects: "destructive", requiresConfirmation: true },
  { name: "order_empty", sideEffects: "destructive", requiresConfirmation: false },
  { name: "order_publish", sideEffects: "write", requiresConfirmation: true },
];

interface Sent {
  name: string;
  body: { input: unknown; confirm?: boolean; idempotencyKey?: string };
  signal: AbortSignal | null;
  answer: (envelope: unknown) => void;
}

/** A hub whose answers a test gives by hand. */
class Desk {
  readonly sent: Sent[] = [];
  manifest: () => Promise<Response> = () => Promise.resolve(Response.json(ok({ actions: ACTIONS })));

  fetch: typeof fetch = (input, init) => {
    const path = String(input);
    if (path.endsWith("/api/v1/actions")) return this.manifest();
    const name = /actions\/(\w+)\/invoke/.exec(path)?.[1] ?? "";
    return new Promise((resolve, reject) => {
      const signal = init?.signal ?? null;
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
      this.sent.push(
        { name, body: JSON.parse(String(init?.body)), signal, answer: (envelope) => resolve(Response.json(envelope)) },
      );
    });
  };
}

const meta = { action: "x", invocationId: "inv_1", surface: "react", durationMs: 1 };
const ok = (data: unknown) => ({ ok: true, data, artifacts: [], logs: [], meta });
const failed = (code: string) => {
  const error = { code, message: "No.", issues: [], retryable: false };
  return { ok: false, error, artifacts: [], logs: [], meta };
};

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});
afterEach(cleanup);

/** Lets everything that can go on go on. */
const settle = () => act(() => new Promise<void>((resolve) => setTimeout(resolve, 0)));

function use<Name extends keyof ShopActions>(name: Name, options: { strict?: boolean; confirm?: Confirm; outlives?: boolean } = {}) {
  const client = createClient<ShopActions>({ fetch: desk.fetch, auth: { kind: "token", token: "t" } });
  const wrapper = ({ children }: { children: ReactNode }) => {
    const provided = (
      <RunyardProvider client={client} {...(options.confirm === undefined ? {} : { confirm: options.confirm })}>
        {children}
      </RunyardProvider>
    );
    return options.strict ? <StrictMode>{provided}</StrictMode> : provided;
  };
  return renderHook(() => useAction<ShopActions, Name>(name, { outlives: options.outlives ?? false }), { wrapper });
}

describe("an action that needs no yes", () => {
  it("a04 may be one that destroys something, where its definition says so", async () => {
    const { result } = use("order_empty");
    act(() => void result.current.invoke({ id: "1" }));
    await settle();
    expect([desk.sent.length, result.current.status]).toEqual([1, "running"]);
  });

  it("is sent at once, and says how it goes and what came of it", async () => {
    const { result } = use("order_create");
    expect(result.current).toMatchObject({ status: "idle", data: undefined, error: null, pending: undefined });
    act(() => void result.current.invoke({ item: "tea" }, { idempotencyKey: "k" }));
    await settle();
    expect(result.current.status).toBe("running");
    expect(desk.sent.map(({ name, body }) => [name, body])).toEqual(
      [["order_create", { input: { item: "tea" }, idempotencyKey: "k" }]],
    );
    desk.sent[0]?.answer(ok({ id: "1" }));
    await settle();
    expect(result.current).toMatchObject({ status: "ok", data: { id: "1" }, envelope: { ok: true } });
  });

  it("that fails says why, and can be called again", async () => {
    const { result } = use("order_create");
    for (const [answer, status] of [[failed("VALIDATION_ERROR"), "error"], [ok({ id: "1" }), "ok"]] as const) {
      act(() => void result.current.invoke({ item: "tea" }));
      await settle();
      desk.sent.at(-1)?.answer(answer);
      await settle();
      expect(result.current.status).toBe(status);
    }
    expect(result.current.error).toBeNull();
  });

  it("is called once at a time", async () => {
    const { result } = use("order_create");
    act(() => void result.current.invoke({ item: "tea" }));
    const second = await result.current.invoke({ item: "tea" });
    await settle();
    expect([second.ok, desk.sent.length, result.current.status]).toEqual([false, 1, "running"]);
    expect(second).toMatchObject({ error: { code: "CONCURRENCY_LIMIT" } });
  });

  it("a21 that is cancelled is ended and says CANCELLED", async () => {
    const { result } = use("order_create");
    act(() => void result.current.invoke({ item: "tea" }));
    await settle();
    act(() => result.current.cancel());
    await settle();
    expect(desk.sent[0]?.signal?.aborted).toBe(true);
    expect(result.current).toMatchObject({ status: "error", error: { code: "CANCELLED" } });
  });
});

describe("a04 an action that needs a yes", () => {
  for (const name of ["order_delete", "order_publish"] as const) {
    it(`sends nothing until somebody confirms it: ${name}`, async () => {
      const { result } = use(name);
      let came: unknown = null;
      act(() => void result.current.invoke({ id: "1" }).then((envelope) => (came = envelope)));
      await settle();
      expect(result.current).toMatchObject({ status: "confirming", pending: { id: "1" } });
      expect(desk.sent).toEqual([]);
      act(() => result.current.confirm());
      act(() => result.current.confirm());
      await settle();
      expect(desk.sent.map(({ body }) => body)).toEqual([{ input: { id: "1" }, confirm: true }]);
      desk.sent[0]?.answer(ok(null));
      await settle();
      expect(result.current).toMatchObject({ status: "ok", pending: undefined });
      expect(came).toMatchObject({ ok: true });
    });
  }

  it("that is dismissed or cancelled sends nothing at all", async () => {
    for (const way of ["dismiss", "cancel"] as const) {
      const { result } = use("order_delete");
      let came: unknown = null;
      act(() => void result.current.invoke({ id: "1" }).then((envelope) => (came = envelope)));
      await settle();
      act(() => result.current[way]());
      act(() => result.current.confirm());
      await settle();
      expect([result.current.status, desk.sent.length]).toEqual(["idle", 0]);
      expect(came).toMatchObject({ ok: false, error: { code: "CANCELLED" } });
    }
  });

  it("waits until it is known what the action does", async () => {
    let told: (response: Response) => void = () => undefined;
    desk.manifest = () => new Promise((resolve) => (told = resolve));
    const { result } = use("order_delete");
    act(() => void result.current.invoke({ id: "1" }));
    await settle();
    expect([result.current.status, desk.sent.length]).toEqual(["running", 0]);
    act(() => result.current.confirm());
    expect(desk.sent).toEqual([]);
    told(Response.json(ok({ actions: ACTIONS })));
    await settle();
    expect([result.current.status, desk.sent.length]).toEqual(["confirming", 0]);
  });

  it("is not sent where nobody can say what it does", async () => {
    desk.manifest = () => Promise.reject(new Error("nobody there"));
    const { result } = use("order_delete");
    act(() => void result.current.invoke({ id: "1" }));
    await settle();
    expect(result.current).toMatchObject({ status: "error", error: { code: "CONNECTION_FAILED" } });
    expect(desk.sent).toEqual([]);
  });

  it("is asked about by the application where that wants to ask, and only true is a yes", async () => {
    const asked: unknown[] = [];
    const [yes, no, broken] = [() => Promise.resolve(true), () => Promise.resolve(false), () => Promise.reject(new Error())];
    for (const [answer, sent] of [[yes, 1], [no, 0], [broken, 0]] as const) {
      desk = new Desk();
      const { result } = use("order_delete", {
        confirm: (request) => {
          asked.push([request.action.name, request.input]);
          return answer();
        },
      });
      act(() => void result.current.invoke({ id: "1" }));
      await settle();
      expect([desk.sent.length, result.current.status]).toEqual([sent, sent === 1 ? "running" : "idle"]);
    }
    expect(asked).toEqual(Array.from({ length: 3 }, () => ["order_delete", { id: "1" }]));
  });
});

describe("a component that goes", () => {
  it("a21 ends its call, unless that is to outlive it", async () => {
    for (const outlives of [false, true]) {
      desk = new Desk();
      const { result, unmount } = use("order_create", { outlives });
      act(() => void result.current.invoke({ item: "tea" }));
      await settle();
      unmount();
      await settle();
      expect([outlives, desk.sent[0]?.signal?.aborted]).toEqual([outlives, !outlives]);
    }
  });

  it("and comes back at once, as in strict mode, sends one request", async () => {
    const client = createClient<ShopActions>({ fetch: desk.fetch, auth: { kind: "token", token: "t" } });
    const wrapper = ({ children }: { children: ReactNode }) => (
      <StrictMode>
        <RunyardProvider client={client}>{children}</RunyardProvider>
      </StrictMode>
    );
    const { result } = renderHook(
      () => {
        const list = useAction<ShopActions, "order_list">("order_list");
        const { invoke } = list;
        useEffect(() => void invoke({}), [invoke]);
        return list;
      },
      { wrapper },
    );
    await settle();
    expect(desk.sent.length).toBe(1);
    desk.sent[0]?.answer(ok(["tea"]));
    await settle();
    expect(result.current).toMatchObject({ status: "ok", data: ["tea"] });
  });
});

it("knows the types of a hub's actions, and takes others by name", () => {
  const typed = () => useAction("run_cancel");
  const named = (name: string) => useAction<AnyActions>(name);
  expectTypeOf<ReturnType<typeof typed>["invoke"]>().parameter(0).toEqualTypeOf<HubActions["run_cancel"]["input"]>();
  expectTypeOf<ReturnType<typeof typed>["data"]>().toEqualTypeOf<HubActions["run_cancel"]["output"] | undefined>();
  expectTypeOf<ReturnType<typeof named>["data"]>().toEqualTypeOf<unknown>();
  // @ts-expect-error There is no such action.
  expect(() => useAction("run_destroy")).toThrow();
});
