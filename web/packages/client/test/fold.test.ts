// What the fold promises: any way in which events come gives the same view, and what was given does not change.
// clause: C06, C08

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EVENT_TYPES, foldRun, RunFold, RunReader, type RunEvent } from "../src/index.js";
import { HELD_EVENTS_MAX } from "../src/fold/reader.js";
import { fixtures, Log, plain } from "./support/events.js";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const item = fc.constantFrom("m1", "m2");
const call = fc.constantFrom("c1", "c2", "c3");
const id = fc.constantFrom("a1", "a2");
const key = fc.constantFrom("c1#1", "k");
const path = fc.constantFrom("a", "b");
/** What each of these adds, with a word of its own. */
const PLAIN: Record<string, (word: string) => [type: string, payload: unknown]> = {
  read: (path) => ["run.file.read", { path }],
  plan: (text) => ["run.plan.updated", { steps: [{ text, status: "pending" }] }],
  turn: () => ["run.turn.started", {}],
  turned: () => ["run.turn.ended", { outcome: "completed" }],
  status: (phase) => ["runtime.status", { phase, profile: "p", backendKind: "b", protocol: "p", usage: { inputTokens: 3 } }],
  thread: (thread) => ["run.thread.recorded", { thread, after: 0, messages: [] }],
  degraded: (reason) => ["run.degraded", { reason }],
  judged: (path) => ["run.gate.judged", { key: path, request: { kind: "read", path }, effect: path === "a" ? "allow" : "deny", reason: "r" }],
  secrets: (profile) => ["run.secrets.projected", { profile, keys: ["auth.json"], how: "gateway" }],
  diff: (path) => ["run.diff.ready", { base: "b", target: "t", paths: [path], summary: "1 file", digest: `d-${path}` }],
  patch: (path) => ["run.patch.proposed", { files: [path], summary: path }],
  artifact: (name) => ["run.artifact.ready", { artifactId: `art_${name}`, kind: "file", summary: name, name }],
  preview: (path) => ["run.preview.ready", { path, readAt: "2026-11-16T08:00:00.000Z" }],
  reasoning: (item) => ["run.reasoning", { item, text: "So." }],
  notice: (message) => ["runtime.error", { message, retrying: false }],
  unavailable: (message) => ["runtime.unavailable", { message, retrying: true, failureKind: "provider-unavailable" }],
  timeout: (message) => ["runtime.timeout", { message, retrying: false, failureKind: "backend-timeout" }],
  invalid: (message) => ["schema.validation_failed", { message, retrying: false, failureKind: "backend-response-invalid" }],
  died: (message) => ["runtime.died", { message }],
  command: (text) => ["run.command.received", { commandId: `cmd_${text}`, command: "steer", text, actor: { id: "ada", kind: "person" } }],
  word: (text) => ["run.command.received", { commandId: `cmd_${text}`, command: "steer", text, untilHeard: true, actor: { id: "ada", kind: "person" } }],
  heard: (text) => ["run.command.heard", { commandId: `cmd_${text}` }],
  cancelling: (reason) => ["run.cancel.requested", { by: { id: "ada", kind: "person" }, reason }],
  unknown: (path) => ["run.of.a.later.version", { path }],
  broken: () => ["run.message.delta", { item: 7 }],
  illegal: () => ["run.planned", { edgeId: "" }],
};

const step = fc.oneof(
  fc.record({ kind: fc.constant("delta"), item, text }),
  fc.record({ kind: fc.constant("done"), item }),
  fc.record({ kind: fc.constant("output"), call, text }),
  fc.record({ kind: fc.constantFrom("call", "reading", "result"), call }),
  fc.record({ kind: fc.constantFrom("ask", "answer", "snooze", "use"), id, key }),
  fc.record({ kind: fc.constantFrom(...Object.keys(PLAIN)), path }),
  fc.record({ kind: fc.constant("pause"), seconds: fc.integer({ min: 1, max: 200 }) }),
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

it("every event that a run can have comes in these logs", () => {
  const made = new Set(Object.values(PLAIN).map((make) => make("a")[0]));
  const drawn = (type: string) => made.has(type) || /^run\.(approval|message|tool)\./.test(type);
  // What leads from state to state comes at the begin of each log, and in the logs that are kept.
  const ends = ["applying", "applied", "completed", "failed", "cancelled"];
  const states = ["created", "planned", "accepted", "preparing", "started", ...ends].map((name) => `run.${name}`);
  expect(EVENT_TYPES.filter((type) => !drawn(type) && !states.includes(type))).toEqual([]);
});

/** A log of these steps, legal or not. */
function logOf(steps: readonly Step[]): RunEvent[] {
  const log = new Log().running();
  const texts = new Map<string, string>();
  let seconds = 1;
  const add = (type: string, payload: unknown) => {
    log.add(type, payload, seconds);
    seconds = 1;
  };
  const grow = (name: string, text: string) => {
    const before = texts.get(name) ?? "";
    texts.set(name, before + text);
    return new TextEncoder().encode(before).length;
  };
  for (const one of steps) {
    if ("seconds" in one) seconds = one.seconds;
    else if ("item" in one) {
      if ("text" in one) add("run.message.delta", { item: one.item, text: one.text, offset: grow(one.item, one.text) });
      else add("run.message.completed", { item: one.item, text: texts.get(one.item) ?? "" });
      if (!("text" in one)) texts.delete(one.item);
    } else if ("call" in one) {
      const { call } = one;
      if ("text" in one) add("run.tool.output", { call, stream: "stdout", text: one.text, offset: grow(call, one.text) });
      else if (one.kind === "call") add("run.tool.call", { call: one.call, tool: "shell", summary: "make", idempotent: false });
      else if (one.kind === "reading") {
        add("run.tool.call", { call: one.call, tool: "read", summary: "a", arguments: { path: "a" }, idempotent: true });
      }
      else add("run.tool.result", { call: one.call, outcome: "succeeded", summary: "ok" });
    } else if ("id" in one) {
      if (one.kind === "ask") log.ask(one.id, one.key);
      else if (one.kind === "answer") log.answer(one.id);
      else if (one.kind === "use") add("run.approval.used", { approvalId: one.id });
      else add("run.approval.snoozed", { approvalId: one.id, until: "u", expiresAt: "e", by: { id: "ada", kind: "person" } });
    } else {
      const [type, payload] = PLAIN[one.kind]?.(one.path) ?? ["run.of.a.later.version", {}];
      add(type, payload);
    }
  }
  return log.events;
}

const throws = fc.array(fc.nat(), { minLength: 200, maxLength: 200 });
const logs = fc.array(step, { maxLength: 60 }).map(logOf);
const copy = (events: readonly RunEvent[]): RunEvent[] => structuredClone([...events]);

describe("c08 the same view comes of", () => {
  it("events that come twice and out of order within the window", () => {
    fc.assert(
      fc.property(logs, throws, fc.integer({ min: 1, max: 40 }), (events, dice, window) => {
        const expected = plain(foldRun(copy(events)));
        const shaken = events
          .flatMap((event, index) => ((dice[index] ?? 0) % 3 === 0 ? [event, event] : [event]))
          .map((event, index) => ({ event, place: index + ((dice[(index * 7) % 200] ?? 0) % window) }))
          .sort((a, b) => a.place - b.place);
        const reader = new RunReader();
        for (const { event } of shaken) reader.push(structuredClone(event));
        expect(reader.gap()).toBeNull();
        expect(plain(reader.view())).toEqual(expected);
      }),
    );
  });

  it("events that are looked at while they come, and what was seen does not change", () => {
    fc.assert(
      fc.property(logs, fc.array(fc.boolean(), { minLength: 90, maxLength: 90 }), (events, looks) => {
        const live = new RunFold();
        const seen: { count: number; view: ReturnType<RunFold["view"]> }[] = [];
        copy(events).forEach((event, index) => {
          live.apply(event);
          if (looks[index] === true) seen.push({ count: index + 1, view: live.view() });
        });
        expect(plain(live.view())).toEqual(plain(foldRun(copy(events))));
        for (const { count, view } of seen.slice(-5)) expect(plain(view)).toEqual(plain(foldRun(copy(events.slice(0, count)))));
      }),
      { numRuns: 60 },
    );
  });

  it("every log that is kept, in halves that overlap", () => {
    for (const { events } of [...fixtures("."), ...fixtures("illegal")]) {
      const reader = new RunReader();
      const half = Math.floor(events.length / 2);
      for (const event of copy([...events.slice(0, half + 2), ...events.slice(half - 2)])) reader.push(event);
      expect(plain(reader.view())).toEqual(plain(foldRun(copy(events))));
    }
  });
});

describe("c08 events that are missing", () => {
  const events = new Log().running().add("run.file.read", { path: "a" }).completed().events;

  it("hold up those after them until they come", () => {
    const reader = new RunReader();
    for (const event of events.filter((one) => one.sequence !== 3)) reader.push(event);
    expect([reader.lastSequence, reader.gap()]).toEqual([2, { from: 3, to: 3 }]);
    const late = events[2];
    if (late !== undefined) reader.push(late);
    expect([reader.gap(), reader.view().state]).toEqual([null, "completed"]);
  });

  it("are shown as missing where nobody has them, and the run is followed further", () => {
    const reader = new RunReader();
    for (const event of events.filter(({ sequence }) => sequence !== 3 && sequence !== 4)) reader.push(event);
    reader.giveUp();
    const view = reader.view();
    expect([view.missing, view.state, view.lastSequence]).toEqual([[{ from: 3, to: 4 }], "completed", 7]);
    expect(view.rows.at(view.rows.indexOf(4))).toMatchObject({ kind: "missing", from: 3, to: 4 });
    expect(view.rows.indexOf(99)).toBe(-1);
  });

  it("do not fill the memory with what waits for them", () => {
    const reader = new RunReader();
    const [first] = events;
    if (first === undefined) return;
    for (let sequence = HELD_EVENTS_MAX * 3; sequence > 1; sequence -= 1) reader.push({ ...first, sequence });
    reader.push(first);
    expect(reader.lastSequence).toBe(HELD_EVENTS_MAX + 1);
  });
});

it("a run of 50,000 events is folded within its bounds of memory", () => {
  const events = 50_000;
  const before = heapBytes();
  const fold = new RunFold();
  for (const event of new Log().running().add("run.turn.started", {}).events) fold.apply(event);
  let offset = 0;
  for (let sequence = 7; sequence <= events; sequence += 1) {
    const text = `word ${sequence} and more words that make a piece of text as agents write them `;
    const payload = sequence % 100 === 0 ? { item: `m${sequence}`, text } : { item: "m", text, offset };
    const type = sequence % 100 === 0 ? "run.message.completed" : "run.message.delta";
    if (sequence % 100 !== 0) offset += text.length;
    fold.apply(JSON.parse(JSON.stringify(envelope(sequence, type, payload))));
    if (sequence % 500 === 0) fold.view();
  }
  const view = fold.view();
  const used = heapBytes() - before;
  expect(view.lastSequence).toBe(events);
  expect(view.rows.length).toBe(6 + 1 + events / 100);
  expect(used).toBeLessThan(100 * 1024 * 1024);
});

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function envelope(sequence: number, type: string, payload: unknown): RunEvent {
  const id = `evt_01977420dc00700080000000${String(sequence).padStart(8, "0")}`;
  const frame = { sequence, prevHash: "0".repeat(64), id, type, runId: "run_1", agentId: "demo" };
  return { ...frame, timestamp: "2026-11-16T08:00:30.000Z", v: 1, payload };
}
