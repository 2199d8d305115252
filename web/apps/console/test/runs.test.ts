// Filters, drafts and addresses: what is typed and chosen, without a page around it.
import { describe, expect, it } from "vitest";
import { runTabOf } from "../src/app/run-tab";
import { taskTitle } from "../src/app/run-title";
import { codeOf, ownPath } from "../src/pages/login/code";
import { changedOptions, EMPTY, fieldOf, policyOf, problemsOf } from "../src/pages/runs/draft";
import type { RunState, RunSummary } from "@runyard/react";
import { countsOf } from "../src/pages/runs/counts";
import { inView, matches, queryOf, readFilter } from "../src/pages/runs/filter";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const run = {
  id: "run_01a1e360e26f70069f6195f03c654e4a",
  state: "running",
  task: "Refresh the quickstart\nand check every command",
  agentId: "codex-docs",
  workspace: { id: "wsp_1", label: "docs-site" },
  createdAt: "2026-11-16T11:30:00Z",
  lastEventAt: "2026-11-16T11:59:00Z",
};

describe("filters in the address", () => {
  it("keeps the states it knows, in the order of a run's life, and leaves out the rest", () => {
    expect([...readFilter({ state: "failed,dreaming,running" }).states]).toEqual(["running", "failed"]);
    expect(readFilter({ view: "sideways", since: "yesteryear" })).toMatchObject({ view: "all", since: undefined });
  });

  it.each([
    [{}, true],
    [{ state: "running,failed" }, true],
    [{ state: "failed" }, false],
    [{ workspace: "docs-site" }, true],
    [{ workspace: "wsp_1" }, true],
    [{ workspace: "ledger" }, false],
    [{ agent: "codex-docs" }, true],
    [{ agent: "codex" }, false],
    [{ since: "1h" }, true],
    [{ text: "EVERY command" }, true],
    [{ text: "654e4a" }, true],
    [{ text: "nothing of that" }, false],
  ])("%j lets it pass: %s", (search, passes) => {
    expect(matches(run, readFilter(search), NOW)).toBe(passes);
  });

  it("goes by when a run was made", () => {
    expect(matches({ ...run, createdAt: "2026-11-16T10:59:00Z" }, readFilter({ since: "1h" }), NOW)).toBe(false);
  });

  it("asks the hub for exactly the states of the view", () => {
    expect(queryOf(readFilter({}), NOW)).toEqual({});
    expect(queryOf(readFilter({ view: "needs" }), NOW)).toEqual({ state: ["needs_approval"] });
    expect(queryOf(readFilter({ view: "ended", state: "failed,running" }), NOW)).toEqual({ state: ["failed"] });
    expect(queryOf(readFilter({ view: "ended", state: "running" }), NOW)).toBeUndefined();
  });

  it("asks the same for a whole minute", () => {
    const filter = readFilter({ since: "1h" });
    expect(queryOf(filter, NOW + 1)).toEqual(queryOf(filter, NOW + 59_999));
    expect(queryOf(filter, NOW)).toEqual({ since: "2026-11-16T11:00:00.000Z" });
  });

  it("every state is in exactly one of active and ended", () => {
    for (const state of ["created", "needs_approval", "completed", "failed", "cancelled"]) {
      expect(inView({ state }, "active")).not.toBe(inView({ state }, "ended"));
    }
  });
});

describe("a draft", () => {
  const filled = { ...EMPTY, task: "Tidy up", agent: "codex", workspace: "wsp_1" };

  it("without task, agent or workspace is not sent", () => {
    expect(problemsOf({ ...EMPTY, task: "  " })).toEqual({ task: "task", agent: "choose", workspace: "choose" });
    expect(problemsOf(filled)).toEqual({});
  });

  it.each([
    ["tokens", "1.5"],
    ["tokens", "0"],
    ["timeout", "ten"],
    ["keepOpen", "-1"],
    ["costUsd", "1,50"],
    ["costUsd", "$2"],
  ] as const)("with %s = %s says so at that field", (field, value) => {
    expect(Object.keys(problemsOf({ ...filled, [field]: value }))).toEqual([field]);
  });

  it("sends no policy where nothing was changed: the profile's own holds", () => {
    expect(changedOptions(filled)).toBe(0);
    expect(policyOf(filled)).toBeUndefined();
  });

  it("sends what was changed and nothing else", () => {
    const changed = { ...filled, network: "deny", costUsd: "2.50", timeout: "5", keepOpen: "10" } as const;
    expect(policyOf(changed)).toEqual({
      network: "deny",
      timeoutMs: 300_000,
      keepOpenMs: 600_000,
      budget: { costUsd: "2.50" },
    });
  });

  it("puts an issue of the hub at its field", () => {
    expect(fieldOf(["executionPolicy", "budget", "costUsd"])).toBe("costUsd");
    expect(fieldOf(["task", "action"])).toBe("task");
    expect(fieldOf(["somewhere"])).toBeUndefined();
  });
});

describe("a login link", () => {
  const code = "0123456789abcdef".repeat(4);
  it.each([code, `#${code}`, ` http://127.0.0.1:4600/login?next=%2Fruns#${code}\n`, code.toUpperCase()])("is read from %s", (pasted) => {
    expect(codeOf(pasted)).toBe(code);
  });
  it.each(["", "abc", `${code}0`, `x${code}`])("is not read from %s", (pasted) => {
    expect(codeOf(pasted)).toBeUndefined();
  });
  it.each([
    ["/runs?state=failed", "/runs?state=failed"],
    ["//elsewhere.example", "/"],
    ["/\\elsewhere.example", "/"],
    ["https://elsewhere.example/", "/"],
    ["/login?next=/login", "/"],
    [undefined, "/"],
  ])("leads from %s to %s", (next, path) => {
    expect(ownPath(next)).toBe(path);
  });
});

describe("what a run is called and where it is", () => {
  it("is the first line of its task that says something, or its action", () => {
    expect(taskTitle("\n  Fix it \nand more")).toBe("Fix it");
    expect(taskTitle({ action: "task_list" })).toBe("task_list");
    expect(taskTitle(null)).toBe("");
  });
  it("is a part of its page", () => {
    expect(runTabOf("/runs/run_1")).toEqual({ tab: "timeline" });
    expect(runTabOf("/runs/run_1/diff")).toEqual({ tab: "diff" });
    expect(runTabOf("/runs/run_1/artifacts/art%2F1")).toEqual({ tab: "artifacts", artifact: "art/1" });
    expect(runTabOf("/runs/run_1/elsewhere")).toEqual({ tab: "timeline" });
  });
});

describe("the counts of the views", () => {
  const list = (states: Record<string, RunState>, next: string | null = null) => ({
    runs: Object.entries(states).map(([id, state]) => ({ ...run, id, state }) as unknown as RunSummary),
    next,
  });
  const everything = () => true;

  it("counts each run once, also those that are further down than the list of all was read", () => {
    const all = list({ a: "completed", b: "running" }, "more");
    const needing = list({ c: "needs_approval" });
    const running = list({ b: "running", old: "running" });
    const { counts, more } = countsOf(all, needing, [running, needing], everything);
    expect(counts).toEqual({ all: 2, needs: 1, active: 3, ended: 1 });
    expect(more).toEqual({ all: true, needs: false, active: false, ended: true });
  });

  it("says that there are more active runs than were read", () => {
    const many = list({ b: "running" }, "more");
    expect(countsOf(list({}), list({}), [many], everything).more.active).toBe(true);
  });

  it("goes by the filters", () => {
    const all = list({ a: "completed", b: "running" });
    expect(countsOf(all, list({}), [all], ({ id }) => id === "a").counts).toEqual({ all: 1, needs: 0, active: 0, ended: 1 });
  });
});
