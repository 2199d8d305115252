// A run that is followed: over broken connections, out of sight, by several at once.
// clause: C08

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import fc from "fast-check";
import { createClient, foldRun, type Client } from "../src/index.js";
import { HIDDEN_MS_MAX, RETRY_MS_MAX, RETRY_MS_MIN, retryDelay, SILENCE_MS_MAX } from "../src/stream.js";
import { LINGER_MS } from "../src/stores/shared.js";
import { TestEnvironment, until } from "./support/environment.js";
import { Log, plain } from "./support/events.js";
import { after, answer, failure, frame, stream, success, TestHub } from "./support/server.js";

const STREAM = /\/runs\/run_1\/stream/;
const EVENTS = /run_events\/invoke/;
const log = () => new Log().running().add("run.message.delta", { item: "m", text: "Hello, ", offset: 0 });

let hub: TestHub;
let environment: TestEnvironment;
let client: Client;

beforeEach(async () => {
  hub = new TestHub();
  environment = new TestEnvironment();
  const baseUrl = await hub.listen();
  client = createClient({ baseUrl, environment, auth: { kind: "token", token: "t" } });
});

afterEach(() => hub.close());

describe("c08 a run that is followed", () => {
  it("goes on after the last whole event when the hub dies in the middle of one", async () => {
    const events = log().add("run.message.delta", { item: "m", text: "world", offset: 7 }).completed().events;
    hub.on(STREAM, (came) => {
      stream(came);
      came.response.write(
        events.slice(0, 3).map(frame).join("") + frame(events[3] ?? events[0]!).slice(0, 40), () => came.response.destroy(),
      );
    });
    const run = client.run("run_1");
    await until(run, ({ link, view }) => link.kind === "waiting" && view.lastSequence === 3);
    hub.on(STREAM, (came) => {
      stream(came);
      came.response.end(after(came, events).map(frame).join(""));
    });
    const done = until(run, ({ link }) => link.kind === "ended");
    environment.advance(RETRY_MS_MIN);
    const { view } = await done;
    const again = await hub.request(STREAM, 2);
    expect(again.headers["last-event-id"]).toBe("3");
    expect(plain(view)).toEqual(plain(foldRun(events)));
    expect(hub.count(STREAM)).toBe(2);
  });

  it("says since when it waits and when it tries again, and waits longer each time", async () => {
    hub.on(STREAM, ({ response }) => void response.destroy());
    const run = client.run("run_1");
    const waits: number[] = [];
    for (let number = 1; number <= 4; number += 1) {
      await until(run, ({ link }) => link.kind === "waiting" && Date.parse(link.retryAt) > environment.now());
      const { link } = run.get();
      if (link.kind !== "waiting") throw new Error("it does not wait");
      expect(link.since).toBe("2026-11-16T09:00:00.000Z");
      waits.push(Date.parse(link.retryAt) - environment.now());
      const unsubscribe = run.subscribe(() => undefined);
      environment.advance(waits.at(-1) ?? 0);
      await hub.request(STREAM, number + 1);
      unsubscribe();
    }
    expect(waits).toEqual([500, 1000, 2000, 4000]);
  });

  it("is over where the hub has nothing more", async () => {
    hub.on(STREAM, ({ response }) => void response.writeHead(204).end());
    expect((await until(client.run("run_1"), ({ link }) => link.kind !== "connecting")).link).toEqual({ kind: "ended" });
  });

  it("is refused for good where the hub says no, and asks again only when told to", async () => {
    for (const [status, code] of [[401, "AUTHENTICATION_ERROR"], [403, "PERMISSION_DENIED"], [404, "NOT_FOUND"]] as const) {
      hub.on(STREAM, (came) => answer(came, status, failure(code, "No.")));
      const run = client.run("run_1");
      const before = hub.count(STREAM);
      const unsubscribe = run.subscribe(() => undefined);
      run.retry();
      const { link } = await until(run, (snapshot) => snapshot.link.kind === "refused" && snapshot.link.code === code);
      expect(link).toEqual({ kind: "refused", code, message: "No." });
      environment.advance(RETRY_MS_MAX * 4);
      expect(hub.count(STREAM) - before).toBeLessThanOrEqual(2);
      unsubscribe();
    }
  });

  it("waits as long as a busy hub asks for", async () => {
    hub.on(STREAM, (came) => answer(came, 429, failure("CONCURRENCY_LIMIT", "Full.", { retryable: true, retryAfterMs: 15_000 })));
    const { link } = await until(client.run("run_1"), (snapshot) => snapshot.link.kind === "waiting");
    expect(link).toMatchObject({ kind: "waiting", retryAt: new Date(environment.now() + 15_000).toISOString() });
  });

  it("takes a stream for dead that says nothing, and one that says it is alive for alive", async () => {
    hub.on(STREAM, stream);
    const run = client.run("run_1");
    const unsubscribe = run.subscribe(() => undefined);
    await until(run, ({ link }) => link.kind === "live");
    const first = await hub.request(STREAM);
    environment.advance(SILENCE_MS_MAX - 1);
    const event = frame(log().events[0]!);
    first.response.write(`:\n\n${event}`);
    await until(run, ({ view }) => view.lastSequence === 1);
    environment.advance(SILENCE_MS_MAX - 1);
    expect(run.get().link.kind).toBe("live");
    environment.advance(2);
    await first.gone;
    await until(run, ({ link }) => link.kind === "waiting");
    unsubscribe();
  });

  it("lets go of its connection in a page that nobody sees, and goes on where it was", async () => {
    const { events } = log();
    hub.on(STREAM, (came) => {
      stream(came);
      came.response.write(after(came, events.slice(0, 4)).map(frame).join(""));
    });
    const run = client.run("run_1");
    const unsubscribe = run.subscribe(() => undefined);
    await until(run, ({ view }) => view.lastSequence === 4);
    const first = await hub.request(STREAM);
    environment.show(false);
    environment.advance(HIDDEN_MS_MAX);
    await first.gone;
    environment.advance(RETRY_MS_MAX);
    expect(hub.count(STREAM)).toBe(1);
    hub.on(STREAM, (came) => {
      stream(came);
      came.response.write(after(came, events).map(frame).join(""));
    });
    environment.show(true);
    const { view } = await until(run, (snapshot) => snapshot.view.lastSequence === 6);
    expect((await hub.request(STREAM, 2)).headers["last-event-id"]).toBe("4");
    expect(plain(view)).toEqual(plain(foldRun(events)));
    unsubscribe();
  });

  it("asks for events that are missing, and shows those that nobody has", async () => {
    const { events } = log();
    hub.on(STREAM, (came) => {
      stream(came);
      came.response.write(events.filter(({ sequence }) => sequence !== 2 && sequence !== 5).map(frame).join(""));
    });
    hub.on(EVENTS, (came) => {
      const { input } = JSON.parse(came.body);
      const found = events.filter(({ sequence }) => sequence === 2 && input.after < 2 && input.limit > 0);
      answer(came, 200, success({ events: found }));
    });
    const { view } = await until(client.run("run_1"), (snapshot) => snapshot.view.lastSequence === 6);
    expect([view.missing, view.state]).toEqual([[{ from: 5, to: 5 }], "preparing"]);
    expect(hub.came.filter(({ path }) => EVENTS.test(path)).map(({ body }) => JSON.parse(body).input.after)).toEqual([1, 4]);
  });
});

describe("a store", () => {
  it("has one stream for all who look, from the first to the last of them", async () => {
    hub.on(STREAM, stream);
    const run = client.run("run_1");
    expect(client.run("run_1")).toBe(run);
    const leave = [run.subscribe(() => undefined), client.run("run_1").subscribe(() => undefined)];
    const came = await hub.request(STREAM);
    leave[0]?.();
    leave[0]?.();
    environment.advance(LINGER_MS * 2);
    expect(came.response.destroyed).toBe(false);
    // A component of strict mode leaves and comes back at once.
    leave[1]?.();
    const back = run.subscribe(() => undefined);
    environment.advance(LINGER_MS * 2);
    expect(hub.count(STREAM)).toBe(1);
    back();
    environment.advance(LINGER_MS);
    await came.gone;
    expect(hub.count(STREAM)).toBe(1);
  });

  it("tells once per frame, however much came", async () => {
    environment.framesHeld = true;
    const { events } = log();
    hub.on(STREAM, stream);
    const run = client.run("run_1");
    let told = 0;
    const unsubscribe = run.subscribe(() => (told += 1));
    await until(run, ({ link }) => link.kind === "live");
    const before = told;
    const came = await hub.request(STREAM);
    came.response.write(events.map(frame).join(""));
    await until(run, () => environment.isFrameWanted);
    expect([told, run.get().view.lastSequence]).toEqual([before, 0]);
    environment.paint();
    expect([told, run.get().view.lastSequence]).toEqual([before + 1, 6]);
    unsubscribe();
  });
});

it("the wait before another attempt grows, is never too long, and differs by chance", () => {
  fc.assert(
    fc.property(fc.nat(60), fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), (attempts, random) => {
      const most = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** attempts);
      const delay = retryDelay(attempts, random);
      expect(delay).toBeLessThanOrEqual(most);
      expect(delay).toBeGreaterThanOrEqual(Math.floor(most / 2));
    }),
  );
});
