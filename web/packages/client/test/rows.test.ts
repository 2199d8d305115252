// What belongs together is one row.
// clause: C03

import { describe, expect, it } from "vitest";
import { foldRun, isQuiet, RunFold, timeUntil, type RunView } from "../src/index.js";
import { fixtures, Log, PERSON, rowsOf } from "./support/events.js";

function kinds(log: Log): string[] {
  return rowsOf(foldRun(log.events)).slice(5).map((row) => row.kind);
}

/** A run whose changes are being applied. */
function applying(): Log {
  const log = new Log().running().add("run.diff.ready", { base: "b", target: "t", paths: ["a"], summary: "1 file", digest: "d" });
  const request = { kind: "apply", digest: "d", stats: { files: 1, insertions: 1, deletions: 0 } };
  return log.ask("apr_1", "review", request).answer("apr_1").add("run.applying", { approvalId: "apr_1", digest: "d" });
}

describe("a timeline", () => {
  it("shows a call with its output, its approval and its result as one row, whatever comes in between", () => {
    const log = new Log().running();
    log.add("run.tool.call", { call: "c", tool: "shell", summary: "make", idempotent: false });
    log.ask("apr_1", "c#1").answer("apr_1").add("run.approval.used", { approvalId: "apr_1" });
    log.add("run.tool.output", { call: "c", stream: "stdout", text: "Grüße", offset: 0 });
    log.add("run.file.read", { path: "a" });
    log.add("run.tool.output", { call: "c", stream: "stderr", text: "oh", offset: 0, omitted: 9, logPath: "art_1" });
    log.add("run.tool.result", { call: "c", outcome: "succeeded", summary: "ok" });
    const view = foldRun(log.events);
    expect(kinds(log)).toEqual(["tool", "read"]);
    expect(rowsOf(view)[5]).toMatchObject({
      kind: "tool", first: 6, last: 13, call: { summary: "make" }, result: { outcome: "succeeded" },
      output: [
        { stream: "stdout", text: "Grüße", omitted: 0 },
        { stream: "stderr", text: "oh", omitted: 9, logPath: "art_1" },
      ],
      approval: { approvalId: "apr_1", used: true, resolution: { resolution: "approved", sequence: 8 } },
    });
    expect([6, 7, 8, 9, 10, 12, 13].map((sequence) => view.rows.indexOf(sequence))).toEqual([5, 5, 5, 5, 5, 5, 5]);
  });

  it("joins an approval that came before its call, and leaves one of its own alone", () => {
    const log = new Log().running().ask("apr_1", "c#1").ask("apr_2", "other");
    log.add("run.tool.call", { call: "c", tool: "shell", summary: "make", idempotent: false });
    expect(kinds(log)).toEqual(["tool", "approval"]);
    expect(foldRun(log.events).open.map((one) => one.approvalId)).toEqual(["apr_1", "apr_2"]);
  });

  it("puts pieces of a message together by their place in bytes, and takes none twice", () => {
    const log = new Log().running();
    log.add("run.message.delta", { item: "m", text: "Grü", offset: 0 });
    log.add("run.file.read", { path: "a" });
    log.add("run.message.delta", { item: "m", text: "ße 😀", offset: 4 });
    log.add("run.message.delta", { item: "m", text: "😀 an", offset: 8 });
    log.add("run.message.delta", { item: "m", text: "Grü", offset: 0 });
    log.add("run.message.delta", { item: "m", text: "alle", offset: 20 });
    const [, , , , , message] = rowsOf(foldRun(log.events));
    expect(message).toMatchObject({ kind: "message", item: "m", text: "Grüße 😀 an…alle", complete: false, first: 6, last: 11 });
    log.add("run.message.completed", { item: "m", text: "Grüße 😀 an euch alle" });
    const [, , , , , whole] = rowsOf(foldRun(log.events));
    expect(whole).toMatchObject({ text: "Grüße 😀 an euch alle", complete: true });
  });

  it("keeps what was heard of a message that broke off, and takes what stands for the rest for nobody's words", () => {
    const log = new Log().running();
    log.add("run.message.delta", { item: "m", text: "I was", offset: 0 });
    log.add("run.message.completed", { item: "m", text: "[This answer broke off.]", brokeOff: true });
    const message = rowsOf(foldRun(log.events)).at(-1);
    expect(message).toMatchObject({ kind: "message", text: "I was", complete: true, brokeOff: "[This answer broke off.]" });
  });

  it("folds reads, plans and reports that follow each other", () => {
    const log = new Log().running();
    for (const path of ["a", "b", "a"]) log.add("run.file.read", { path });
    for (const text of ["one", "two"]) log.add("run.plan.updated", { steps: [{ text, status: "pending" }] });
    const backend = { profile: "p", backendKind: "b", protocol: "p" };
    for (const phase of ["ready", "ready", "parked"]) log.add("runtime.status", { phase, ...backend });
    expect(kinds(log)).toEqual(["read", "plan", "runtime", "runtime"]);
    expect(rowsOf(foldRun(log.events))[5]).toMatchObject({ paths: ["a", "b"], first: 6, last: 8 });
    expect(foldRun(log.events).plan).toEqual([{ text: "two", status: "pending" }]);
  });

  it("folds reads across what a compact timeline leaves out, and across nothing else", () => {
    const log = new Log().running();
    const judged = (path: string, effect: string) =>
      log.add("run.gate.judged", { key: path, request: { kind: "read", path }, effect, reason: "r" });
    const thread = { thread: "t", after: 0, messages: [] };
    judged("a", "allow").add("run.file.read", { path: "a" }).add("run.thread.recorded", thread);
    judged("b", "allow").add("run.file.read", { path: "b" });
    judged("c", "deny").add("run.file.read", { path: "d" }).add("run.file.read", { path: "e" }, 90);
    expect(kinds(log)).toEqual(["judged", "read", "judged", "judged", "read", "gap", "read"]);
    const view = foldRun(log.events);
    expect(rowsOf(view)[6]).toMatchObject({ kind: "read", paths: ["a", "b"], first: 7, last: 10 });
    expect([6, 7, 8, 9, 10, 11].map((sequence) => view.rows.indexOf(sequence))).toEqual([5, 6, 6, 7, 6, 8]);
    expect(rowsOf(view).filter((row) => !isQuiet(row)).map((row) => row.kind)).toEqual(["read", "judged", "read", "gap", "read"]);
  });

  it("folds the reads of a log as a hub stores it, each of which was judged first", () => {
    const [stored] = fixtures(".").filter(({ name }) => name === "completed-with-apply");
    const events = stored?.events ?? [];
    const read = events.findIndex(({ type }) => type === "run.file.read");
    const again = events.slice(read - 1, read + 1).map((event) => structuredClone(event));
    const longer = [...events.slice(0, read + 1), ...again, ...events.slice(read + 1)];
    const view = foldRun(longer.map((event, index) => ({ ...event, sequence: index + 1 })));
    expect(rowsOf(view).filter((row) => row.kind === "read")).toMatchObject([{ paths: ["README.md"], first: read + 1, last: read + 3 }]);
    expect(view).toMatchObject({ state: "completed", degraded: [] });
  });

  it("tells what a call reads once, in the row of the call", () => {
    const log = new Log().running();
    const call = (name: string, path: string) =>
      log.add("run.tool.call", { call: name, tool: "read", summary: `read ${path}`, arguments: { path }, idempotent: true });
    const over = (name: string) => log.add("run.tool.result", { call: name, outcome: "succeeded", summary: "3 lines" });
    call("c", "a");
    call("d", "b").add("run.file.read", { path: "a" });
    over("c").add("run.file.read", { path: "b" }).add("run.file.read", { path: "other" });
    over("d").add("run.file.read", { path: "a" });
    expect(kinds(log)).toEqual(["tool", "tool", "read"]);
    expect(rowsOf(foldRun(log.events)).slice(5)).toMatchObject([
      { first: 6, last: 9, call: { call: "c" } },
      { first: 7, last: 12, call: { call: "d" } },
      { paths: ["other", "a"], first: 11, last: 13 },
    ]);
  });

  it("puts what an agent keeps of its conversation to the row before it", () => {
    const log = new Log().running().add("run.file.read", { path: "a" });
    log.add("run.thread.recorded", { thread: "t", after: 0, messages: [] }).add("run.file.read", { path: "b" });
    log.add("run.thread.recorded", { thread: "t", after: 0, messages: [] }, 90);
    const view = foldRun(log.events);
    expect(kinds(log), "after a while it has a row, which claims nothing of the run's state").toEqual(["read", "gap", "thread"]);
    expect(rowsOf(view)[5]).toMatchObject({ paths: ["a", "b"], first: 6, last: 8 });
    expect([6, 7, 8].map((sequence) => view.rows.indexOf(sequence))).toEqual([5, 5, 5]);
  });

  it("draws a gap of more than a minute, and says who was waited for", () => {
    const log = new Log().running();
    log.add("run.file.read", { path: "a" }, 60).add("run.file.read", { path: "b" }, 61);
    log.ask("apr_1").answer("apr_1", "approved", 95);
    const rows = rowsOf(foldRun(log.events)).filter((row) => row.kind === "gap");
    expect(rows).toMatchObject([
      { ms: 61_000, waiting: "agent", first: 6, last: 7, events: [] },
      { ms: 95_000, waiting: "person", first: 8, last: 9 },
    ]);
    const { time } = foldRun(log.events);
    expect(time).toEqual({ preparingMs: 4_000, workingMs: 122_000, waitingMs: 95_000 });
  });

  it("puts a gap between what was asked and what was decided, and what the decision led to below it", () => {
    const log = new Log().running();
    log.add("run.tool.call", { call: "c", tool: "shell", summary: "make", idempotent: false });
    log.ask("apr_1", "c#1").answer("apr_1", "approved", 95).add("run.approval.used", { approvalId: "apr_1" });
    log.add("run.tool.result", { call: "c", outcome: "succeeded", summary: "ok" });
    const view = foldRun(log.events);
    expect(rowsOf(view).slice(5)).toMatchObject([
      { kind: "approval", asked: true, first: 6, last: 7, approval: { resolution: { resolution: "approved" } } },
      { kind: "gap", ms: 95_000, waiting: "person" },
      { kind: "tool", first: 8, last: 10, call: { summary: "make" }, result: { outcome: "succeeded" }, approval: { used: true } },
    ]);
    expect([6, 7, 8, 9, 10].map((sequence) => view.rows.indexOf(sequence))).toEqual([5, 5, 7, 7, 7]);
  });

  it("puts every decision of one wait below it, and the call that follows one of them, too", () => {
    const log = new Log().running().ask("apr_1", "c#1").ask("apr_2", "other");
    log.add("runtime.status", { phase: "parked", profile: "p", backendKind: "b", protocol: "p" }, 70);
    log.answer("apr_1", "approved", 80).answer("apr_2", "rejected", 1);
    log.add("run.tool.call", { call: "c", tool: "shell", summary: "make", idempotent: false });
    expect(kinds(log)).toEqual(["approval", "approval", "gap", "runtime", "gap", "tool", "approval"]);
    expect(rowsOf(foldRun(log.events))[10]).toMatchObject({ kind: "tool", first: 9, last: 11, approval: { approvalId: "apr_1" } });
  });

  it("leaves a decision that nobody waited for in the row of its question, also after an earlier gap", () => {
    const log = new Log().running().add("run.file.read", { path: "a" }, 61).ask("apr_1").answer("apr_1");
    expect(kinds(log)).toEqual(["gap", "read", "approval"]);
    expect(rowsOf(foldRun(log.events))[7]).not.toHaveProperty("asked");
  });

  it("draws no gap inside of a row that says itself how long it took", () => {
    const log = new Log().running();
    log.add("run.tool.call", { call: "c", tool: "shell", summary: "make", idempotent: false });
    log.add("run.tool.result", { call: "c", outcome: "succeeded", summary: "ok" }, 300).add("run.file.read", { path: "a" }, 61);
    expect(kinds(log)).toEqual(["tool", "gap", "read"]);
    log.add("run.tool.call", { call: "d", tool: "shell", summary: "make", idempotent: false }).add("run.file.read", { path: "b" });
    log.add("run.tool.result", { call: "d", outcome: "succeeded", summary: "ok" }, 300);
    expect(kinds(log)).toEqual(["tool", "gap", "read", "tool", "read", "gap"]);
  });

  it("numbers turns and says what asked for each", () => {
    const log = new Log().running().add("run.turn.started", {}).add("run.turn.ended", { outcome: "interrupted" });
    const command = { commandId: "cmd_1", command: "turn", text: "And now?", actor: { id: "ada", kind: "person" } };
    log.add("run.command.received", command).add("run.turn.started", { commandId: "cmd_1" });
    expect(rowsOf(foldRun(log.events)).slice(5)).toMatchObject([
      { kind: "turn", number: 1, outcome: "interrupted", first: 6, last: 7 },
      { kind: "command", command },
      { kind: "turn", number: 2, command },
    ]);
    expect(foldRun(log.events)).toMatchObject({ turns: 2, turnActive: true });
  });

  it("says of a word that it is on its way until the agent has it, in the row of the word", () => {
    const log = new Log().running().add("run.turn.started", {});
    const command = (name: string) => ({ commandId: name, command: "steer", text: "Be brief.", untilHeard: true, actor: PERSON });
    log.add("run.command.received", command("cmd_1")).add("run.command.received", command("cmd_2")).add("run.file.read", { path: "a" });
    const waiting = rowsOf(foldRun(log.events)).slice(6);
    expect(waiting).toMatchObject([{ kind: "command", unheard: true }, { kind: "command", unheard: true }, { kind: "read" }]);
    log.add("run.command.heard", { commandId: "cmd_1" }, 90);
    const view = foldRun(log.events);
    expect(kinds(log)).toEqual(["turn", "command", "command", "read", "gap"]);
    expect(rowsOf(view)[6]).toMatchObject({ first: 7, last: 10, command: command("cmd_1") });
    expect(rowsOf(view)[6]).not.toHaveProperty("unheard");
    expect(rowsOf(view)[7]).toHaveProperty("unheard");
    expect(view.rows.indexOf(10)).toBe(6);
  });

  it.each([
    ["run.turn.ended", { outcome: "completed" }],
    ["run.turn.started", {}],
    ["run.cancelled", { by: PERSON, reason: "Enough.", metrics: {} }],
  ])("lets no word be on its way after %s", (type, payload) => {
    const log = new Log().running().add("run.turn.started", {});
    log.add("run.command.received", { commandId: "cmd_1", command: "interrupt", untilHeard: true, actor: PERSON }).add(type, payload);
    expect(rowsOf(foldRun(log.events))[6]).not.toHaveProperty("unheard");
  });

  it("says of commands of earlier logs nothing about their way", () => {
    const log = new Log().running().add("run.command.received", { commandId: "cmd_1", command: "steer", text: "Hm.", actor: PERSON });
    expect(rowsOf(foldRun(log.events))[5]).not.toHaveProperty("unheard");
  });

  it("puts what the agent heard to the row before it where the word has none, or by itself after a while", () => {
    const log = new Log().running().add("run.file.read", { path: "a" }).add("run.command.heard", { commandId: "cmd_1" });
    log.add("run.command.heard", { commandId: "cmd_2" }, 90);
    const view = foldRun(log.events);
    expect(kinds(log)).toEqual(["read", "gap", "heard"]);
    expect(rowsOf(view).filter((row) => !isQuiet(row)).map((row) => row.kind)).toEqual(["read", "gap"]);
    expect([6, 7, 8].map((sequence) => view.rows.indexOf(sequence))).toEqual([5, 5, 7]);
  });

  it("shows who cancels while something is applied, and why", () => {
    const requested = { by: PERSON, reason: "Not now." };
    const log = applying().add("run.cancel.requested", requested);
    const view = foldRun(log.events);
    expect(view).toMatchObject({ state: "applying", cancelRequested: requested, cancelled: null, degraded: [] });
    expect(rowsOf(view).at(-1)).toMatchObject({ kind: "cancelling", requested });
    expect(foldRun(applying().events).cancelRequested).toBeNull();
    log.add("run.cancelled", { ...requested, metrics: {} });
    expect(foldRun(log.events)).toMatchObject({ state: "cancelled", cancelRequested: requested, review: { status: "failed" } });
  });

  it("leaves what was all in place before it could be cancelled applied", () => {
    const log = applying().add("run.cancel.requested", { by: PERSON, reason: "Not now." });
    log.add("run.applied", { approvalId: "apr_1", digest: "d" }).add("run.cancelled", { by: PERSON, reason: "Not now.", metrics: {} });
    expect(foldRun(log.events)).toMatchObject({ state: "cancelled", review: { status: "applied" } });
  });

  it("believes no cancel without a reason", () => {
    const log = applying().add("run.cancel.requested", { by: PERSON, reason: " " });
    expect(foldRun(log.events)).toMatchObject({ cancelRequested: null, degraded: [{ reason: "illegal:applying:run.cancel.requested" }] });
  });

  it("c06 shows what it does not know, and what it cannot read, without losing its place", () => {
    const log = new Log().running().add("run.dreamt", { of: "sheep" }).add("run.message.delta", { item: 5 }).completed();
    expect(kinds(log)).toEqual(["unknown", "unknown", "lifecycle"]);
    expect(foldRun(log.events)).toMatchObject({ state: "completed", degraded: [] });
  });

  it("c03 a state without what proves it is not entered", () => {
    const log = new Log().running().add(
      "run.failed", { code: "x", message: " ", recovery: "r", terminalStatus: "failed", metrics: {} },
    );
    expect(foldRun(log.events)).toMatchObject(
      { state: "running", degraded: [{ reason: "illegal:running:run.failed", sequence: 6 }] },
    );
  });

  it("replaces only the rows that changed", () => {
    const fold = new RunFold();
    const log = new Log().running().add(
      "run.message.delta", { item: "m", text: "a", offset: 0 },
    ).add("run.file.read", { path: "a" });
    for (const event of log.events) fold.apply(event);
    const before = fold.view().rows;
    expect(fold.view().rows).toBe(before);
    log.add("run.message.delta", { item: "m", text: "b", offset: 1 });
    for (const event of log.events) fold.apply(event);
    const after = fold.view().rows;
    expect(
      Array.from({ length: 7 }, (_, index) => before.at(index) === after.at(index)),
    ).toEqual([true, true, true, true, true, false, true]);
    expect([before.at(5), after.at(5)]).toMatchObject([{ text: "a" }, { text: "ab" }]);
    expect(after.rev).toBeGreaterThan(before.rev);
    expect(() => after.at(7)).toThrow(RangeError);
  });
});

describe("the time of a run", () => {
  const time = { workingMs: 1_000, waitingMs: 2_000, preparingMs: 3_000 };
  const at = "2026-11-16T08:00:00.000Z";
  const later = Date.parse(at) + 5_000;

  it("goes on after its last event as it was, until it has ended", () => {
    const until = (state: RunView["state"], lastAt: string | null = at) => timeUntil({ state, time, lastAt }, later);
    expect(until("needs_approval")).toEqual({ ...time, waitingMs: 7_000 });
    expect(until("running")).toEqual({ ...time, workingMs: 6_000 });
    expect(until("planned")).toEqual({ ...time, preparingMs: 8_000 });
    expect([until("completed"), until("unknown"), until("running", null)]).toEqual([time, time, time]);
  });

  it("never runs backwards where the hub's clock is ahead", () => {
    expect(timeUntil({ state: "running", time, lastAt: at }, later - 60_000)).toEqual(time);
  });
});
