// Calls: an envelope whatever happens.
// clause: A21

import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { createClient, isExact, readJson, type Client, type Envelope, type LogLine, type Progress } from "../src/index.js";
import { answer, failure, stream, success, TestHub } from "./support/server.js";

interface ShopActions {
  order_create: { input: { item: string; count?: number }; output: { id: string } };
  order_list: { input: Record<string, never>; output: { orders: string[] } };
}

let hub: TestHub;
let baseUrl: string;
let shop: Client<ShopActions>;

beforeEach(async () => {
  hub = new TestHub();
  baseUrl = await hub.listen();
  shop = createClient<ShopActions>({ baseUrl, auth: { kind: "session", pageKey: () => "key" } });
});

afterEach(() => hub.close());

describe("a call", () => {
  it("carries who asks, and what was asked for, and nothing else", async () => {
    hub.on(/invoke/, (came) => answer(came, 200, success({ id: "1" })));
    const made = await shop.call("order_create", { item: "tea" }, { confirm: true, idempotencyKey: "k", timeoutMs: 5 });
    expect(made).toMatchObject({ ok: true, data: { id: "1" } });
    const [came] = hub.came;
    expect(came).toMatchObject({ method: "POST", path: "/api/v1/actions/order_create/invoke" });
    expect(came?.headers).toMatchObject({ "x-runyard-page": "key", "content-type": "application/json" });
    expect(JSON.parse(came?.body ?? "")).toEqual({ input: { item: "tea" }, confirm: true, idempotencyKey: "k", timeoutMs: 5 });
  });

  it("with a token carries that, and on the surface dev goes there", async () => {
    hub.on(/invoke/, (came) => answer(came, 200, success(null)));
    await createClient<ShopActions>({ baseUrl, auth: { kind: "token", token: "t" }, surface: "dev" }).call("order_list", {});
    expect(hub.came[0]).toMatchObject({ path: "/dev/api/actions/order_list/invoke", headers: { authorization: "Bearer t" } });
    expect(hub.came[0]?.headers["x-runyard-page"]).toBeUndefined();
  });

  it("gives a failure as the hub says it, and one of its own where nobody answers", async () => {
    hub.on(
      /invoke/, (came) => answer(
        came, 422, failure("VALIDATION_ERROR", "No.", { issues: [{ path: ["item"], message: "Required." }] }),
      ),
    );
    const refused = await shop.call("order_create", { item: "" });
    expect(refused).toMatchObject({ ok: false, error: { code: "VALIDATION_ERROR", issues: [{ path: ["item"] }] } });
    hub.on(/invoke/, ({ response }) => void response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>"));
    expect(await shop.call("order_list", {})).toMatchObject({ ok: false, error: { code: "CONNECTION_FAILED", retryable: true } });
    hub.on(/invoke/, ({ response }) => void response.destroy());
    expect(await shop.call("order_list", {})).toMatchObject(
      { ok: false, error: { code: "CONNECTION_FAILED", retryable: false } },
    );
    const again = await shop.call("order_list", {}, { idempotencyKey: "k" });
    expect(again).toMatchObject({ ok: false, error: { retryable: true }, meta: { action: "order_list" } });
  });

  it("with an input that cannot be written is refused here", async () => {
    const self: { item: string; more?: unknown } = { item: "tea" };
    self.more = self;
    for (const refused of [await shop.call("order_create", self), await shop.follow("order_create", self)]) {
      expect(refused).toMatchObject({ ok: false, error: { code: "VALIDATION_ERROR" }, meta: { action: "order_create" } });
    }
    expect(hub.came).toEqual([]);
  });

  it("a21 that is aborted ends at the hub, too, and says so", async () => {
    hub.on(/invoke/, () => undefined);
    const abort = new AbortController();
    const calling = shop.call("order_list", {}, { signal: abort.signal });
    const came = await hub.request(/invoke/);
    abort.abort();
    expect(await calling).toMatchObject({ ok: false, error: { code: "CANCELLED" } });
    await came.gone;
  });

  it("that is followed tells logs, progress and artifacts before the envelope", async () => {
    const said = [
      { type: "log", level: "warn", message: "hm", time: "t", fields: { a: 1 } },
      { type: "progress", message: "half", percent: 50, time: "t", fields: { type: "progress", percent: 50 } },
      { type: "artifact", artifact: { id: "art_1", name: "a" } },
      { type: "later", message: "unknown" },
      { type: "result", envelope: success({ id: "1" }) },
    ];
    hub.on(/invoke/, (came) => {
      stream(came);
      came.response.end(said.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join(""));
    });
    const heard: [string, unknown][] = [];
    const done = await shop.follow("order_create", { item: "tea" }, {
      onLog: (line: LogLine) => heard.push(["log", line.message]),
      onProgress: (progress: Progress) => heard.push(["progress", progress.percent]),
      onArtifact: (artifact) => heard.push(["artifact", artifact["name"]]),
    });
    expect(done).toMatchObject({ ok: true, data: { id: "1" } });
    expect(heard).toEqual([["log", "hm"], ["progress", 50], ["log", "half"], ["artifact", "a"]]);
    expect(hub.came[0]?.headers.accept).toBe("text/event-stream");
  });

  it("that is followed and breaks off is a failure", async () => {
    hub.on(/invoke/, (came) => {
      stream(came);
      came.response.end("event: log\ndata: {\"type\":\"log\",\"message\":\"a\"}\n\n");
    });
    expect(await shop.follow("order_list", {})).toMatchObject({ ok: false, error: { code: "CONNECTION_FAILED" } });
  });

  it("has the types of the application's actions", () => {
    expectTypeOf(shop.call<"order_create">).returns.resolves.toEqualTypeOf<Envelope<{ id: string }>>();
    expectTypeOf(shop.data<"order_list">).returns.toHaveProperty("refresh");
    // @ts-expect-error There is no such action.
    const wrongName = () => shop.call("order_destroy", {});
    // @ts-expect-error It takes no such input.
    const wrongInput = () => shop.call("order_create", { items: "tea" });
    expect([typeof wrongName, typeof wrongInput]).toEqual(["function", "function"]);
  });
});

describe("what the hub holds", () => {
  it("is downloaded as it is, and a refusal is thrown with its code", async () => {
    hub.on(/content$/, ({ response }) => void response.writeHead(200, { "content-type": "image/png" }).end("picture"));
    const blob = await shop.download("run_1", "art_1");
    expect([await blob.text(), blob.type, hub.came[0]?.path]).toEqual(
      ["picture", "image/png", "/api/v1/runs/run_1/artifacts/art_1/content"],
    );
    hub.on(/content$/, (came) => answer(came, 403, failure("PERMISSION_DENIED", "No.")));
    await expect(shop.download("run_1", "art_1")).rejects.toMatchObject({ code: "PERMISSION_DENIED", message: "No." });
  });

  it("keeps numbers that a script cannot hold, where the runtime can", () => {
    expect(
      [isExact("9007199254740993"), isExact("0.1"), isExact("1e400"), isExact("-12.50")],
    ).toEqual([false, true, false, true]);
    expect(readJson('{"a":[1,2.5],"b":"12345678901234567890"}')).toEqual({ a: [1, 2.5], b: "12345678901234567890" });
    const written = '{"big":18446744073709551615,"list":[1.00000000000000000001]}';
    const read = readJson(written);
    if ("rawJSON" in JSON) expect(JSON.stringify(read)).toBe(written);
    else expect(read).toEqual({ big: 18446744073709552000, list: [1] });
  });
});
