// Lists and answers that keep themselves current.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient, refusal, type Client, type RunState } from "../src/index.js";
import { DataStore, UNTOLD_MS } from "../src/stores/data.js";
import { HIDDEN_POLL_MS, POLL_MS } from "../src/stores/hub.js";
import { LINGER_MS } from "../src/stores/shared.js";
import { RETRY_MS_MIN } from "../src/stream.js";
import { TestEnvironment, until } from "./support/environment.js";
import { answer, failure, stream, success, TestHub, type Came } from "./support/server.js";

const STREAM = /^\/api\/v1\/stream$/;
const RUNS = /run_list\/invoke/;
const SHOW = /run_show\/invoke/;
const APPROVALS = /approval_list\/invoke/;

interface Made {
  id: string;
  state: RunState;
  lastSequence: number;
  createdAt: string;
  task: string;
  agentId: string;
  workspace: { id: string; label: string };
}

let hub: TestHub;
let baseUrl: string;
let environment: TestEnvironment;
let client: Client;
let runs: Made[];
let told: Came | null;

const run = (number: number, state: RunState = "running", task = `task ${number}`): Made => {
  const createdAt = new Date(Date.parse("2026-11-16T08:00:00Z") + number * 1000).toISOString();
  const agentId = number % 2 === 0 ? "even" : "odd";
  return {
    id: `run_${String(number).padStart(4, "0")}`, state, lastSequence: 5, createdAt, task, agentId, workspace: {
      id: "wsp_1", label: "shop",
    },
  };
};

const change = (changed: Pick<Made, "id" | "state" | "lastSequence">[], approvals = 0) =>
  told?.response.write(`event: changed\ndata: ${JSON.stringify({ runs: changed, approvals })}\n\n`);

beforeEach(async () => {
  hub = new TestHub();
  environment = new TestEnvironment();
  baseUrl = await hub.listen();
  client = createClient({ baseUrl, environment, auth: { kind: "session", pageKey: () => "key" } });
  runs = [];
  told = null;
  hub.on(STREAM, (came) => {
    told = came;
    stream(came);
    change([]);
  });
  hub.on(/\/api\/v1\/session$/, (came) =>
    answer(
      came, 200, success(
        { actor: { id: "ada", kind: "person" }, permissions: ["runs.read"], name: "shop", version: "1", hub: true },
      ),
    ),
  );
  hub.on(RUNS, (came) => {
    const { state, before, limit } = JSON.parse(came.body).input;
    const listed = runs.filter(
      (one) => (state === undefined || one.state === state) && (before === undefined || one.id < before),
    );
    const page = listed.slice(0, limit);
    answer(came, 200, success({ runs: page, ...(listed.length > limit ? { next: page.at(-1)?.id } : {}) }));
  });
  hub.on(SHOW, (came) => answer(came, 200, success({ run: runs.find((one) => one.id === JSON.parse(came.body).input.id) })));
});

afterEach(() => hub.close());

/** Lets what rests between two reads go on. */
const rest = () => environment.advance(100);

describe("a list of runs", () => {
  it("is read page by page", async () => {
    runs = Array.from({ length: 120 }, (_, index) => run(120 - index));
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    const first = await until(list, ({ loading }) => !loading);
    expect([first.runs.length, first.next]).toEqual([50, "run_0071"]);
    await list.loadMore();
    await list.loadMore();
    expect([list.get().runs.length, list.get().next]).toEqual([120, null]);
    expect(new Set(list.get().runs.map((one) => one.id)).size).toBe(120);
    unsubscribe();
  });

  it("is filtered by the hub where it can, and here where it cannot", async () => {
    runs = Array.from(
      { length: 30 }, (_, index) => run(
        30 - index, index % 3 === 0 ? "failed" : "completed", index % 5 === 0 ? "Fix the API" : "Write",
      ),
    );
    const list = client.runs({ state: "failed", agent: "even", text: "api" });
    const { runs: found } = await until(list, ({ loading }) => !loading);
    expect(found.map((one) => one.id)).toEqual(["run_0030"]);
    expect(JSON.parse(hub.came.find(({ path }) => RUNS.test(path))?.body ?? "").input).toMatchObject({ state: "failed" });
    const several = await until(
      client.runs({ state: ["failed", "completed"], since: run(28).createdAt }), ({ loading }) => !loading,
    );
    expect(several.runs.map((one) => one.id)).toEqual(["run_0030", "run_0029", "run_0028"]);
    expect(client.runs({ agent: "odd", text: "x" })).toBe(client.runs({ text: "x", agent: "odd" }));
  });

  it("shows a change at once, reads that run again, and drops what no longer matches", async () => {
    runs = [run(2), run(1)];
    const list = client.runs({ state: "running" });
    const unsubscribe = list.subscribe(() => undefined);
    await until(list, ({ loading, link }) => !loading && link.kind === "live");
    runs = [{ ...run(2), lastSequence: 9, task: "renamed" }, { ...run(1), state: "completed", lastSequence: 8 }];
    change([{ id: "run_0002", state: "running", lastSequence: 9 }]);
    await until(list, (snapshot) => snapshot.runs[0]?.lastSequence === 9);
    await until(list, (snapshot) => snapshot.runs[0]?.task === "renamed", rest);
    change([{ id: "run_0001", state: "completed", lastSequence: 8 }]);
    await until(list, (snapshot) => snapshot.runs.length === 1);
    unsubscribe();
  });

  it("reads itself again for a run that it does not know", async () => {
    runs = [run(1)];
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    await until(list, ({ loading, link }) => !loading && link.kind === "live");
    runs = [run(2), run(1)];
    change([{ id: "run_0002", state: "created", lastSequence: 1 }]);
    await until(list, (snapshot) => snapshot.runs.map((one) => one.id).join() === "run_0002,run_0001", rest);
    unsubscribe();
  });

  /** Waits until all was read after the hub was there. */
  const current = async (list: ReturnType<Client["runs"]>) => {
    await until(list, ({ link }) => link.kind === "live");
    await list.refresh();
  };

  it("is not read again for a run that is further down than it was read", async () => {
    runs = Array.from({ length: 120 }, (_, index) => run(120 - index));
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    await current(list);
    const [lists, shows] = [hub.count(RUNS), hub.count(SHOW)];
    change([{ id: "run_0005", state: "completed", lastSequence: 9 }]);
    // What comes after it is read, so the first was heard and let go.
    runs[0] = { ...run(120), lastSequence: 9, task: "renamed" };
    change([{ id: "run_0120", state: "running", lastSequence: 9 }]);
    await until(list, (snapshot) => snapshot.runs[0]?.task === "renamed", rest);
    expect([hub.count(RUNS), hub.count(SHOW)]).toEqual([lists, shows + 1]);
    await list.loadMore();
    await list.loadMore();
    change([{ id: "run_0004", state: "completed", lastSequence: 9 }]);
    runs = runs.map((one) => (one.id === "run_0004" ? { ...one, lastSequence: 9, task: "renamed, too" } : one));
    await until(list, (snapshot) => snapshot.runs.some(({ task }) => task === "renamed, too"), rest);
    unsubscribe();
  });

  /** What is to be answered only when the test says so, as things were when it was asked. */
  const held = (path: RegExp, data: () => unknown) => {
    const answers: (() => void)[] = [];
    hub.on(path, (came) => {
      const then = structuredClone(data());
      answers.push(() => answer(came, 200, success(then)));
    });
    return answers;
  };

  it("never goes back to an older answer after the hub has said more", async () => {
    runs = [run(1)];
    const list = client.runs();
    const seen = new Set<string>();
    const unsubscribe = list.subscribe(() => list.get().runs.forEach((one) => seen.add(`${one.lastSequence} ${one.state} ${one.task}`)));
    await current(list);
    runs = [{ ...run(1), lastSequence: 8 }];
    const answers = held(SHOW, () => ({ run: runs[0] }));
    change([{ id: "run_0001", state: "running", lastSequence: 8 }]);
    await until(list, () => answers.length === 1, rest);
    runs = [{ ...run(1, "completed", "renamed"), lastSequence: 9 }];
    change([{ id: "run_0001", state: "completed", lastSequence: 9 }]);
    await until(list, (snapshot) => snapshot.runs[0]?.lastSequence === 9);
    answers[0]?.();
    await until(list, () => answers.length === 2, rest);
    answers[1]?.();
    await until(list, (snapshot) => snapshot.runs[0]?.task === "renamed", rest);
    expect([...seen]).toEqual(["5 running task 1", "8 running task 1", "9 completed task 1", "9 completed renamed"]);
    unsubscribe();
  });

  it("does not take up again, from an older page, a run that no longer matches", async () => {
    runs = [run(2), run(1)];
    const list = client.runs({ state: "running" });
    const lengths: number[] = [];
    const unsubscribe = list.subscribe(() => lengths.push(list.get().runs.length));
    await current(list);
    const answers = held(RUNS, () => ({ runs }));
    const again = list.refresh();
    await until(list, () => answers.length === 1, rest);
    change([{ id: "run_0001", state: "completed", lastSequence: 9 }]);
    await until(list, (snapshot) => snapshot.runs.length === 1);
    lengths.length = 0;
    answers[0]?.();
    await again;
    expect([list.get().runs.map((one) => one.id), lengths.filter((length) => length !== 1)]).toEqual([["run_0002"], []]);
    unsubscribe();
  });

  it("keeps what the hub said of a run that was in no page yet, and reads that run again", async () => {
    runs = Array.from({ length: 60 }, (_, index) => run(60 - index));
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    await current(list);
    const late = runs.map((one) => (one.id === "run_0003" ? { ...one, state: "failed" as const, lastSequence: 9, task: "renamed" } : one));
    const answers = held(RUNS, () => ({ runs: runs.slice(50) }));
    const more = list.loadMore();
    await until(list, () => answers.length === 1);
    change([{ id: "run_0003", state: "failed", lastSequence: 9 }, { id: "run_0060", state: "running", lastSequence: 9 }]);
    await until(list, (snapshot) => snapshot.runs[0]?.lastSequence === 9);
    runs = late;
    answers[0]?.();
    await more;
    expect(list.get().runs.find((one) => one.id === "run_0003")).toMatchObject({ state: "failed", lastSequence: 9 });
    await until(list, (snapshot) => snapshot.runs.some(({ task }) => task === "renamed"), rest);
    unsubscribe();
  });

  it("says that a run could not be read, and asks again by itself", async () => {
    runs = [run(1)];
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    await current(list);
    runs = [{ ...run(1), lastSequence: 9, task: "renamed" }];
    hub.on(SHOW, (came) => answer(came, 500, failure("INTERNAL_ERROR", "Oh.")));
    change([{ id: "run_0001", state: "running", lastSequence: 9 }]);
    await until(list, ({ error }) => error?.code === "INTERNAL_ERROR", rest);
    const { error } = await until(list, (snapshot) => snapshot.runs[0]?.task === "renamed", rest);
    expect([error, hub.count(STREAM)], "and not because its stream was opened anew").toEqual([null, 1]);
    unsubscribe();
  });

  it("keeps what it has when the hub cannot be reached, and says so", async () => {
    runs = [run(1)];
    const list = client.runs();
    const unsubscribe = list.subscribe(() => undefined);
    await until(list, ({ loading }) => !loading);
    hub.on(RUNS, ({ response }) => void response.destroy());
    await list.refresh();
    expect(list.get()).toMatchObject({ error: { code: "CONNECTION_FAILED" }, runs: [{ id: "run_0001" }] });
    unsubscribe();
  });
});

describe("the hub", () => {
  it("says who is logged in and what they may do", async () => {
    const { actor, permissions, name } = await until(client.hub(), (snapshot) => snapshot.actor !== null);
    expect({ actor, permissions, name }).toEqual(
      { actor: { id: "ada", kind: "person" }, permissions: ["runs.read"], name: "shop" },
    );
  });

  it("is one stream for all lists, and none after the last", async () => {
    hub.on(APPROVALS, (came) => answer(came, 200, success({ approvals: [] })));
    const leave = [
      client.runs(), client.runs({ agent: "odd" }), client.approvals(), client.hub(),
    ].map((store) => store.subscribe(() => undefined));
    const came = await hub.request(STREAM);
    await until(client.hub(), ({ link }) => link.kind === "live");
    expect(hub.count(STREAM)).toBe(1);
    for (const one of leave) one();
    environment.advance(LINGER_MS);
    environment.advance(LINGER_MS);
    await came.gone;
  });

  it("that has no such stream is asked now and then, seldom while nobody looks", async () => {
    hub.on(STREAM, (came) => answer(came, 404, failure("NOT_FOUND", "No.")));
    let asked = 0;
    const counting: typeof fetch = (input, init) => {
      asked += RUNS.test(String(input)) ? 1 : 0;
      return fetch(input, init);
    };
    const list = createClient({ baseUrl, environment, fetch: counting, auth: { kind: "token", token: "t" } }).runs();
    const unsubscribe = list.subscribe(() => undefined);
    await until(list, ({ loading, link }) => !loading && link.kind === "live");
    const passes = async (ms: number) => {
      await list.refresh();
      const before = asked;
      environment.advance(ms - 1);
      const early = asked - before;
      environment.advance(1);
      return [early, asked - before];
    };
    expect(await passes(POLL_MS)).toEqual([0, 1]);
    environment.show(false);
    expect(await passes(HIDDEN_POLL_MS)).toEqual([0, 1]);
    unsubscribe();
  });

  it("refuses everybody whom it does not know, wherever that was found", async () => {
    const state = client.hub();
    const unsubscribe = state.subscribe(() => undefined);
    await until(state, ({ link, actor }) => link.kind === "live" && actor !== null);
    hub.on(/run_create/, (came) => answer(came, 401, failure("AUTHENTICATION_ERROR", "Who are you?")));
    await client.call("run_create", { task: "x", agent: "a", workspace: "w" });
    expect(state.get()).toMatchObject({ link: { kind: "refused", code: "AUTHENTICATION_ERROR" }, actor: null, permissions: [] });
    hub.on(/^\/login$/, (came) => answer(came, 200, success({ pageKey: "new" })));
    expect(await client.logIn("code")).toMatchObject({ ok: true, data: { pageKey: "new" } });
    await until(state, ({ link, actor }) => link.kind === "live" && actor?.id === "ada");
    unsubscribe();
  });
});

describe("what waits for a person", () => {
  const request = { kind: "shell", command: "make", cwd: "." };
  const asked = (id: string, runId: string) => ({ id, runId, state: "open", title: id, request });

  it("is read again when it changes, and what did not change stays the same", async () => {
    let open = [asked("apr_1", "run_1")];
    hub.on(APPROVALS, (came) => answer(came, 200, success({ approvals: open })));
    const store = client.approvals();
    const unsubscribe = store.subscribe(() => undefined);
    const before = await until(store, ({ approvals, link }) => approvals.length === 1 && link.kind === "live");
    open = [...open, asked("apr_2", "run_2")];
    change([{ id: "run_2", state: "needs_approval", lastSequence: 3 }], 2);
    const { approvals } = await until(store, (snapshot) => snapshot.approvals.length === 2, rest);
    expect(approvals[0]).toBe(before.approvals[0]);
    unsubscribe();
  });
});

describe("an answer", () => {
  it("is asked for once by all who look, again when told to, and stays until a newer one is there", async () => {
    let version = "1";
    hub.on(/version_show/, (came) => answer(came, 200, success({ version })));
    const store = client.data("version_show", {});
    expect(client.data("version_show", {})).toBe(store);
    const leave = [store.subscribe(() => undefined), store.subscribe(() => undefined)];
    expect((await until(store, ({ loading }) => !loading)).data).toEqual({ version: "1" });
    version = "2";
    const again = store.refresh();
    expect(store.get()).toMatchObject({ loading: true, data: { version: "1" } });
    await again;
    expect([store.get().data, hub.count(/version_show/)]).toEqual([{ version: "2" }, 2]);
    hub.on(/version_show/, (came) => answer(came, 500, failure("INTERNAL_ERROR", "Oh.")));
    await store.refresh();
    expect(store.get()).toMatchObject({ loading: false, data: { version: "2" }, error: { code: "INTERNAL_ERROR" } });
    for (const one of leave) one();
  });

  it("about what runs do is asked for again when the hub says that they did something, and not after the last look", async () => {
    let state = "running";
    hub.on(/session_list/, (came) => answer(came, 200, success({ sessions: [{ id: "ses_1", state }] })));
    const store = client.data("session_list", { limit: 100 }).follow("session_list", client.hub());
    const shown = () => store.get().data?.sessions[0]?.state;
    const leave = store.subscribe(() => undefined);
    await until(client.hub(), ({ link }) => link.kind === "live" && shown() === "running");
    state = "completed";
    change([{ id: "run_0001", state: "completed", lastSequence: 9 }]);
    await until(store, () => shown() === "completed", rest);
    leave();
    environment.advance(LINGER_MS);
    const asked = hub.count(/session_list/);
    const hubSeen = client.runs();
    change([{ id: "run_0001", state: "completed", lastSequence: 10 }]);
    await until(hubSeen, ({ loading }) => !loading, () => environment.advance(UNTOLD_MS));
    expect(hub.count(/session_list/)).toBe(asked);
  });

  it("that changes with states only is left alone while a run merely goes on", async () => {
    const names = ["edge_list", "session_list", "agent_list"] as const;
    const asked = { edge_list: 0, session_list: 0, agent_list: 0 };
    const stores = names.map((name) =>
      new DataStore(environment, async () => {
        asked[name] += 1;
        return refusal("INTERNAL_ERROR", "Oh.", { action: name });
      }).follow(name, client.hub()),
    );
    const leave = stores.map((store) => store.subscribe(() => undefined));
    await until(client.hub(), ({ openApprovals }) => openApprovals === 0);
    const rested = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      environment.advance(UNTOLD_MS / 6);
    };
    await rested();
    await rested();
    /** How often each is asked for because of it. */
    const tell = async (state: RunState, lastSequence: number, approvals = 0) => {
      const before = { ...asked };
      await new Promise<void>((heard) => {
        const deafen = client.hub().onChange(() => heard(deafen()));
        change([{ id: "run_0001", state, lastSequence }], approvals);
      });
      await rested();
      return names.map((name) => asked[name] - before[name]);
    };
    expect(await tell("running", 8)).toEqual([1, 1, 0]);
    expect(await tell("running", 9)).toEqual([0, 1, 0]);
    expect(await tell("needs_approval", 10, 1)).toEqual([1, 1, 0]);
    for (const one of leave) one();
  });

  it("that no hub tells about is asked for now and then, and when the hub is back; the same answer tells nobody", async () => {
    let label = "shop";
    hub.on(/workspace_list/, (came) => answer(came, 200, success({ workspaces: [{ id: "wsp_1", label }] })));
    const store = client.data("workspace_list", {}).follow("workspace_list", client.hub());
    let told = 0;
    const leave = store.subscribe(() => (told += 1));
    const shown = () => store.get().data?.workspaces[0]?.label;
    await until(client.hub(), ({ link }) => link.kind === "live" && shown() === "shop");
    const first = store.get().data;
    const [before, asked] = [told, hub.count(/workspace_list/)];
    await until(store, () => hub.count(/workspace_list/) >= asked + 2, () => environment.advance(UNTOLD_MS / 5));
    await until(store, () => shown() === "shop");
    expect([store.get().data === first, told]).toEqual([true, before]);
    label = "bakery";
    await until(store, () => shown() === "bakery", () => environment.advance(UNTOLD_MS / 5));
    label = "harbour";
    const again = hub.request(STREAM, 2);
    (await hub.request(STREAM)).response.destroy();
    await until(client.hub(), ({ link }) => link.kind === "waiting");
    environment.advance(RETRY_MS_MIN);
    await again;
    environment.advance(UNTOLD_MS / 5);
    await until(store, () => shown() === "harbour");
    leave();
  });

  it("that nobody waits for any more is given up", async () => {
    hub.on(/version_show/, () => undefined);
    const leave = client.data("version_show", {}).subscribe(() => undefined);
    const came = await hub.request(/version_show/);
    leave();
    environment.advance(LINGER_MS);
    await came.gone;
  });
});
