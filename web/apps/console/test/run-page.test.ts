// C20: what the run page makes of a run, apart from how it looks.
import type { ApprovalEntry, Row, RowContent, Rows, RunEvent, RunState, RunView } from "@runyard/react";
import { describe, expect, it } from "vitest";
import { mayGoOn, refusal } from "../src/pages/run/allowed";
import { stepsOf, STEPS_SHOWN } from "../src/pages/run/lifecycle";
import { targetOf } from "../src/pages/run/location";
import { happening } from "../src/pages/run/now";
import { EventList } from "../src/pages/run/timeline/events";
import { clipped } from "../src/pages/run/timeline/rows/message";
import { bounded } from "../src/pages/run/timeline/rows/tool";
import { lowerBound, ShownRows } from "../src/pages/run/timeline/shown";
import { transcriptMarkdown, transcriptOf } from "../src/pages/run/transcript-text";
import {
  anchorOf,
  artifactCount,
  degradedText,
  diffText,
  noDiffText,
  outcomeText,
  patchText,
  rowDuration,
  runTitle,
  takesBack,
  timeOf,
  tookText,
} from "../src/pages/run/words";
import { spanText } from "../src/ui";

const AT = "2026-11-16T08:00:00.000Z";

function event(sequence: number): RunEvent {
  return { sequence, id: `evt_${sequence}`, type: "x", runId: "run_1", timestamp: AT, v: 1, payload: {} };
}

function row(sequence: number, content: RowContent): Row {
  return { key: `k${sequence}`, first: sequence, last: sequence, at: AT, endAt: AT, events: [event(sequence)], ...content };
}

let revisions = 0;
function rowsOf(list: readonly Row[]): Rows {
  revisions += 1;
  return {
    length: list.length,
    rev: revisions,
    at: (index) => {
      const found = list[index];
      if (found === undefined) throw new RangeError("none");
      return found;
    },
    indexOf: (sequence) => list.findIndex((one) => one.first <= sequence && sequence <= one.last),
  };
}

const noise: RowContent = { kind: "runtime", status: { phase: "working", profile: "p", backendKind: "b", protocol: "q" } };
const message = (text: string, complete = true): RowContent => ({ kind: "message", item: "m", text, complete });
const turn = (number: number): RowContent => ({ kind: "turn", number });
const tool = (result: boolean): RowContent => ({
  kind: "tool",
  call: { call: "c", tool: "shell", summary: "ls `a`", idempotent: true },
  output: [],
  result: result ? { call: "c", outcome: "succeeded", summary: "exit code 0" } : null,
});

function view(state: RunState, list: readonly Row[] = [], more: Partial<RunView> = {}): RunView {
  return {
    state,
    lastSequence: list.length,
    lastAt: AT,
    createdAt: AT,
    task: { kind: "text", text: "Do it", redacted: false },
    actor: { id: "owner", kind: "person" },
    workspace: null,
    agentId: "demo",
    backendProfile: null,
    sessionId: null,
    parentRunId: null,
    carries: null,
    edgeId: null,
    executionPolicy: null,
    onReject: null,
    planned: null,
    started: null,
    degraded: [],
    steps: [],
    rows: rowsOf(list),
    approvals: [],
    open: [],
    review: null,
    artifacts: [],
    plan: [],
    turns: 0,
    turnActive: false,
    usage: null,
    time: { workingMs: 0, waitingMs: 0, preparingMs: 0 },
    failure: null,
    cancelRequested: null,
    cancelled: null,
    completed: null,
    missing: [],
    ...more,
  };
}

describe("the rows that are shown", () => {
  const list = [
    row(1, { kind: "lifecycle", state: "created" }),
    row(2, turn(1)),
    row(3, noise),
    row(4, message("a")),
    row(5, turn(2)),
    row(6, tool(true)),
  ];

  it("leave out noise of the runtime, and only that", () => {
    const shown = new ShownRows(false).update(rowsOf(list));
    expect(Array.from({ length: shown.length }, (_, at) => shown.at(at).first)).toEqual([2, 4, 5, 6]);
    expect(new ShownRows(true).update(rowsOf(list)).length).toBe(6);
  });

  it("find an event, and say where its row is left out or not there", () => {
    const shown = new ShownRows(false).update(rowsOf(list));
    expect([shown.positionOf(4), shown.positionOf(3), shown.positionOf(99)]).toEqual([1, "hidden", undefined]);
    expect([shown.near(4), shown.near(3), shown.near(1), shown.near(99)]).toEqual([1, 1, 0, undefined]);
  });

  it("know the heading over each row, and where the next begins", () => {
    const shown = new ShownRows(false).update(rowsOf(list));
    expect(shown.turnOver(1)?.first).toBe(2);
    expect(shown.turnOver(3)?.first).toBe(5);
    expect(shown.turnAfter(0)).toBe(5);
    expect(shown.turnAfter(2)).toBeUndefined();
  });

  it("grow with the list in any steps as if it had come at once", () => {
    const long = Array.from({ length: 500 }, (_, at) =>
      row(at + 1, at % 7 === 0 ? turn(at) : at % 3 === 0 ? noise : message(String(at))),
    );
    const whole = new ShownRows(false).update(rowsOf(long));
    for (const size of [1, 3, 64, 200]) {
      const grown = new ShownRows(false);
      for (let end = size; end < long.length + size; end += size) grown.update(rowsOf(long.slice(0, end)));
      expect(grown.length).toBe(whole.length);
      expect(grown.moved).toBe(0);
      expect([...Array(grown.length).keys()].every((at) => grown.at(at) === whole.at(at))).toBe(true);
      expect(grown.turnOver(200)).toBe(whole.turnOver(200));
    }
  });

  it("say when something was put in above", () => {
    const shown = new ShownRows(true).update(rowsOf(list));
    shown.update(rowsOf([...list.slice(0, 2), row(20, message("late")), ...list.slice(2)]));
    expect(shown.moved).toBe(1);
    expect(shown.length).toBe(7);
    expect(shown.at(2).first).toBe(20);
  });

  it("are found by a search that ends", () => {
    expect([lowerBound([], 3), lowerBound([1, 3, 5], 3), lowerBound([1, 3, 5], 4), lowerBound([1, 3, 5], 9)]).toEqual([
      0, 1, 2, 3,
    ]);
  });
});

describe("time that passed", () => {
  const gap = (sequence: number, from: string, to: string, waiting: "person" | "agent"): Row => ({
    key: `gap-${sequence}`, first: sequence - 1, last: sequence, at: `2026-11-16T${from}Z`, endAt: `2026-11-16T${to}Z`, events: [],
    kind: "gap", ms: Date.parse(`2026-11-16T${to}Z`) - Date.parse(`2026-11-16T${from}Z`), waiting,
  });
  const list = [
    row(1, message("a")), gap(2, "08:00:00", "08:10:00", "person"), row(2, noise), gap(3, "08:10:00", "08:13:00", "agent"),
    row(3, message("b")), gap(4, "08:13:00", "08:15:00", "agent"), row(4, message("c")),
  ];

  it("is one gap where only rows that are left out stand between, however the list grew", () => {
    const whole = new ShownRows(false).update(rowsOf(list));
    const grown = new ShownRows(false);
    for (let end = 1; end <= list.length; end += 1) grown.update(rowsOf(list.slice(0, end)));
    for (const shown of [whole, grown]) {
      expect(Array.from({ length: shown.length }, (_, at) => shown.at(at).kind)).toEqual(["message", "gap", "message", "gap", "message"]);
      expect(shown.at(1)).toMatchObject({ key: "gap-2", ms: 780_000, waiting: "person", last: 3 });
      expect(shown.at(3)).toBe(list[5]);
    }
  });

  it("is as many gaps as there are where everything is shown", () => {
    expect(new ShownRows(true).update(rowsOf(list)).length).toBe(7);
  });

  it("a row is named by the event whose time it shows", () => {
    expect(anchorOf({ ...row(13, message("m")), last: 19 })).toBe(13);
    expect(anchorOf(gap(3, "08:10:00", "08:13:00", "agent"))).toBe(3);
    expect([spanText(0), spanText(340.4), spanText(61_000)]).toEqual(["0 ms", "340 ms", "1m 01s"]);
  });
});

describe("a row of an approval", () => {
  const entry: ApprovalEntry = {
    approvalId: "apr_1", key: "c", request: { kind: "shell", command: "make", cwd: "." }, redacted: false, digest: "d", risk: "low",
    workspace: { id: "wsp_1", label: "harbor" }, actor: { id: "demo", kind: "agent", runId: "run_1" },
    reason: "", expiresAt: AT, sequence: 59, at: AT, snoozedUntil: null, resolution: null, used: false,
  };
  const decidedAt = "2026-11-16T08:00:40.000Z";
  const decision = { approvalId: "apr_1", resolution: "approved", decidedBy: { id: "owner", kind: "person" }, sequence: 60, at: decidedAt } as const;
  const decided = { ...row(59, { kind: "approval", approval: { ...entry, resolution: decision } }), last: 61 };
  const asked = row(59, { kind: "approval", approval: { ...entry, resolution: decision }, asked: true });

  it("has the number and the time of the decision, as the audit has, and those of the question until then", () => {
    expect([decided, row(59, { kind: "approval", approval: entry }), asked].map((one) => [anchorOf(one), timeOf(one)])).toEqual([
      [60, decidedAt],
      [59, AT],
      [59, AT],
    ]);
  });

  it("is told by the same number in the transcript", () => {
    expect(transcriptOf(rowsOf([decided]), "demo", 10).entries[0]).toMatchObject({ sequence: 60, at: decidedAt });
  });
});

describe("how long a row took", () => {
  const lasting = (ms: number): Row => ({ ...row(28, tool(true)), last: 37, endAt: new Date(Date.parse(AT) + ms).toISOString() });

  it("is said alike in the row and in its detail", () => {
    for (const ms of [100, 3_700, 61_000]) expect(rowDuration(lasting(ms))).toBe(tookText(lasting(ms)));
    expect([40, 178, 3_700, 61_000].map((ms) => tookText(lasting(ms)))).toEqual(["40 ms", "0.2s", "3.7s", "1m 01s"]);
    expect(rowDuration(lasting(40))).toBe("");
  });
});

describe("a patch", () => {
  it("whose summary only names its files says it once", () => {
    expect(patchText({ files: ["docs/a.md"], summary: "wrote docs/a.md" })).toBe("");
    expect(patchText({ files: ["a.md", "b.md"], summary: "a.md, b.md" })).toBe("");
    expect(patchText({ files: ["docs/a.md"], summary: "deleted docs/a.md" })).toBe("deleted docs/a.md");
  });
});

describe("a run without a diff", () => {
  const failure = { code: "run_timeout", message: "", recovery: "" } as unknown as NonNullable<RunView["failure"]>;
  const cancelled = { by: { id: "owner", kind: "person" }, reason: "" } as unknown as NonNullable<RunView["cancelled"]>;

  it("says why: it ended early, it had no checkout, or not all of its events are here", () => {
    expect(noDiffText(view("failed", [], { failure }))).toBe("No diff: it failed before changes were compared");
    expect(noDiffText(view("cancelled", [], { cancelled }))).toBe("No diff: it was cancelled before changes were compared");
    expect(noDiffText(view("completed"))).toBe("No diff: the run had no checkout");
    expect(noDiffText(view("failed", [], { failure, missing: [{ from: 3, to: 4 }] }))).toContain("could not be fetched");
  });
});

describe("a run that takes back", () => {
  const id = `run_${"0a".repeat(16)}`;

  it("says what it is about, and a list's word for it is enough to know it", () => {
    const task = { kind: "text", text: `Take back the changes of ${id}`, redacted: false } as const;
    expect(runTitle({ task, carries: { of: id, digest: "d", to: "files", undo: true } })).toBe("Take back what run_0a0a…0a0a0a applied");
    expect([takesBack(task.text, id), takesBack(task.text, "run_other"), takesBack({ action: "x" }, id)]).toEqual([true, false, false]);
  });

  it("has files and no lines", () => {
    expect(diffText({ base: "applied", paths: [], stats: { files: 3 } })).toBe("3 files to take back");
    expect(diffText({ base: "abc", paths: ["a"] })).toBe("1 file");
    expect(diffText({ base: "abc", paths: [] })).toBe("No changes");
  });
});

describe("the raw events", () => {
  it("stand in the order of the log, however rows group them", () => {
    const both = { ...row(1, tool(true)), last: 4, events: [event(1), event(4)] };
    const events = new EventList().update(rowsOf([both, row(2, message("x"))]));
    expect(Array.from({ length: events.length }, (_, at) => events.at(at).sequence)).toEqual([1, 2, 4]);
    expect([events.positionOf(4), events.positionOf(3)]).toEqual([2, undefined]);
    events.update(rowsOf([both, row(2, message("x")), row(5, message("y"))]));
    expect(events.length).toBe(4);
  });
});

describe("the rail", () => {
  const step = (state: RunState, sequence: number) => ({ state, sequence, at: AT });
  const first = [step("created", 1), step("planned", 2), step("accepted", 3), step("preparing", 4), step("running", 5)];

  it("has the same number of places from the first event to the start of the work", () => {
    const lengths = first.map((now, index) => stepsOf(view(now.state, [], { steps: first.slice(0, index + 1) })).length);
    expect(new Set(lengths)).toEqual(new Set([7]));
  });

  it("never has more places than it shows, however often a run waits", () => {
    const steps = [...first];
    for (let turns = 0; turns < 60; turns += 1) {
      const state = turns % 2 === 0 ? "needs_approval" : "running";
      steps.push(step(state, steps.length + 1));
      const shown = stepsOf(view(state, [], { steps }));
      expect(shown.length).toBeLessThanOrEqual(STEPS_SHOWN);
      expect(shown.find((one) => one.when === "now")).toMatchObject({ state, sequence: steps.length });
    }
    expect(stepsOf(view("running", [], { steps }), true).length).toBeGreaterThan(60);
  });

  it("shows nothing that may come after an end", () => {
    expect(stepsOf(view("failed", [], { steps: [...first, step("failed", 6)] })).at(-1)).toMatchObject({
      when: "now",
      state: "failed",
    });
  });
});

describe("what happens now", () => {
  it("is the tool that runs, then the model, then nothing", () => {
    expect(happening(view("running", [row(1, turn(1)), row(2, tool(false)), row(3, noise)], { turnActive: true }))).toMatchObject(
      { kind: "tool", sequence: 2 },
    );
    expect(happening(view("running", [row(1, turn(1)), row(2, tool(true))], { turnActive: true })).kind).toBe("model");
    expect(happening(view("running", [row(1, message("x", false))], { turnActive: true })).kind).toBe("writing");
    expect(happening(view("running")).kind).toBe("idle");
  });

  it("is a wait for a person, or an end, whatever the rows say", () => {
    expect(happening(view("needs_approval", [row(1, tool(false))])).kind).toBe("person");
    expect(happening(view("completed", [row(1, tool(false))])).kind).toBe("ended");
  });
});

describe("what a run produced", () => {
  const review = (paths: string[]) =>
    ({ diff: { base: "b", target: "t", paths, summary: "", digest: "d" }, status: "proposed", sequence: 7, turns: 1 }) as unknown as RunView["review"];
  const artifact = { artifactId: "art_1", kind: "file", summary: "s", sequence: 5, at: AT };

  it("is counted with its own diff and patch, which stand in the same list", () => {
    expect(artifactCount({ artifacts: [], review: null })).toBe(0);
    expect(artifactCount({ artifacts: [], review: review([]) }), "nothing was changed").toBe(0);
    expect(artifactCount({ artifacts: [], review: review(["a"]) })).toBe(2);
    expect(artifactCount({ artifacts: [artifact], review: review(["a", "b"]) })).toBe(3);
  });
});

describe("what may be said to a run", () => {
  const policy = { sandbox: "workspace-write", network: "ask", approval: "ask", timeoutMs: 1, idleMs: 1, keepOpenMs: 1 } as const;

  it("is what the engine takes, with the reason where it does not", () => {
    const running = view("running", [], { turnActive: true });
    expect((["turn", "steer", "interrupt", "cancel"] as const).map((deed) => refusal(running, deed, true))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(refusal(running, "finish", true)).toBe("run.refused.notKeptOpen");
    expect(refusal(view("running", [], { executionPolicy: policy }), "finish", true)).toBeUndefined();
    expect(refusal(view("running"), "steer", true)).toBe("run.refused.noTurn");
    expect(refusal(view("needs_approval", [], { turnActive: true }), "interrupt", true)).toBeUndefined();
    expect(refusal(view("completed"), "turn", true)).toBe("run.refused.ended");
    expect(refusal(running, "cancel", false)).toBe("run.refused.permission");
  });
});

describe("a run that applies something", () => {
  const cancelRequested = { by: { id: "owner", kind: "person" }, reason: "Not now." } as const;
  const deeds = ["turn", "steer", "interrupt", "finish", "cancel"] as const;
  const refused = (shown: RunView, mayWrite = true) => deeds.map((deed) => refusal(shown, deed, mayWrite));

  it("can be cancelled, and be told nothing else", () => {
    expect(refused(view("applying"))).toEqual([...Array(4).fill("run.refused.applying"), undefined]);
    expect(refusal(view("applying"), "cancel", false)).toBe("run.refused.permission");
  });

  it("is cancelled once", () => {
    const shown = view("applying", [], { cancelRequested });
    expect(refused(shown)).toEqual([...Array(4).fill("run.refused.applying"), "run.refused.cancelling"]);
    expect(refusal(view("cancelled", [], { cancelRequested }), "cancel", true)).toBe("run.refused.ended");
    expect([happening(view("applying")).kind, happening(shown).kind]).toEqual(["state", "cancelling"]);
    expect(happening(view("cancelled", [], { cancelRequested })).kind).toBe("ended");
  });

  it("says in its transcript who cancels, and why", () => {
    const rows = rowsOf([row(1, { kind: "cancelling", requested: cancelRequested }), row(2, { kind: "heard" })]);
    expect(transcriptOf(rows, "demo", 9).entries).toMatchObject([{ sequence: 1, who: "owner", text: "Cancelling:", note: "Not now." }]);
  });
});

describe("going on in the session of a run", () => {
  const task = { kind: "text", text: "Say hello.", redacted: false } as const;
  const action = { kind: "action", action: "echo", input: {} } as const;

  it("is for what has ended and was said in words", () => {
    expect(["completed", "failed", "cancelled"].map((state) => mayGoOn(view(state as RunState, [], { task })))).toEqual([true, true, true]);
    expect(["running", "needs_approval", "unknown"].map((state) => mayGoOn(view(state as RunState, [], { task })))).toEqual([false, false, false]);
    expect(mayGoOn(view("completed", [], { task: action })), "an action has no conversation").toBe(false);
    expect(mayGoOn(view("completed", [], { task, carries: { of: "run_2", undo: true } as RunView["carries"] }))).toBe(false);
  });
});

describe("texts", () => {
  it("are cut at a line where they are long, and not at all where they are short", () => {
    expect(clipped("short\ntext")).toBe("short\ntext");
    expect(clipped("line\n".repeat(100)).split("\n")).toHaveLength(16);
    expect(clipped("x".repeat(100_000)).length).toBeLessThan(2_000);
  });

  it("keep their begin and end where the middle is left out", () => {
    const cut = bounded(`begin${"x".repeat(10_000)}end`, 1_000);
    expect(cut.startsWith("begin")).toBe(true);
    expect(cut.endsWith("end")).toBe(true);
    expect(cut).toContain("9008");
    expect(bounded("all of it", 1_000)).toBe("all of it");
  });

  it("name what the page itself refused", () => {
    expect(degradedText("illegal:planned:run.completed")).toContain("run.completed");
    expect(degradedText("no sandbox")).toBe("no sandbox");
    expect([outcomeText("exit code 3"), outcomeText("297 bytes")]).toEqual(["exit 3", "297 bytes"]);
  });

  it("of addresses are taken only where they name an event", () => {
    expect(["seq=4321", "seq=0", "seq=", "seq=1e3", "top", "seq=-1"].map(targetOf)).toEqual([4321, null, null, null, null, null]);
  });
});

describe("the transcript", () => {
  const list = [row(1, turn(1)), row(2, message("Hello **you**")), row(3, noise), row(4, tool(true))];

  it("has what was said and done, in order, and no noise", () => {
    expect(transcriptOf(rowsOf(list), "demo", 100).entries.map((entry) => entry.sequence)).toEqual([1, 2, 4]);
    expect(transcriptOf(rowsOf(list), "demo", 1)).toMatchObject({ left: 2 });
  });

  it("is Markdown that keeps ticks in code apart", () => {
    const text = transcriptMarkdown("run_1", view("running", list));
    expect(text).toContain("**demo**\n\nHello **you**");
    expect(text).toContain("`` ls `a` ``");
  });
});
