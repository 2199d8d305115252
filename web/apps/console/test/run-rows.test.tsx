// @vitest-environment happy-dom
// C20: what rows, bars and lists of runs show, in both languages.
import { foldRun, type Row, type RuntimeError, type RunSummary, type RunView } from "@runyard/react";
import { cleanup, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { setLanguage } from "../src/i18n";
// Loaded before the tests, so that switching to it waits for nothing.
import "../src/i18n/zh";
import { FollowBar } from "../src/pages/run/timeline/follow-bar";
import { EventRow } from "../src/pages/run/timeline/row";
import { baseText, sandboxText } from "../src/pages/run/words";
import { RunsTable } from "../src/pages/runs/table";

// Nothing here is gone to.
vi.mock("@tanstack/react-router", () => ({
  Link: ({ children }: { children?: ReactNode }) => <a>{children}</a>,
  useRouter: () => ({}),
}));

afterEach(async () => {
  cleanup();
  await setLanguage("en");
});

const AT = "2026-11-16T08:00:00.000Z";
const view = (more: Partial<RunView>): RunView => ({ ...foldRun([]), lastSequence: 11, lastAt: AT, ...more });
const nothing = (): void => undefined;

describe("the bar below the timeline", () => {
  const keys = (shown: RunView, following: boolean): number =>
    render(<FollowBar view={shown} runId="run_1" following={following} fresh={0} onFollow={nothing} />).container.querySelectorAll("kbd").length;

  it("shows a key only beside the words for what it does", () => {
    expect(keys(view({ state: "running" }), true)).toBe(1);
    expect(keys(view({ state: "failed" }), false)).toBe(1);
    expect(keys(view({ state: "failed" }), true)).toBe(0);
  });

  it("says that what is applied is being cancelled", () => {
    const requested = { by: { id: "ada", kind: "person" }, reason: "Not now." } as const;
    const shown = (more: Partial<RunView>): string =>
      render(<FollowBar view={view({ state: "applying", ...more })} runId="run_1" following fresh={0} onFollow={nothing} />).container.textContent;
    expect(shown({ cancelRequested: requested })).toContain("Cancelling: what was written is taken back");
    cleanup();
    expect(shown({})).not.toContain("Cancelling");
  });
});

describe("a row", () => {
  const frame = { key: "k", first: 59, last: 61, at: AT, endAt: AT, events: [] };
  const textOf = (row: Row, open = false): string =>
    render(
      <EventRow runId="run_1" row={row} position={0} total={1} selected={false} open={open} measure={nothing} onSelect={nothing} onToggle={nothing} />,
    ).container.textContent;

  it("of a decision has the decision's number", () => {
    const resolution = { approvalId: "apr_1", resolution: "approved", decidedBy: { id: "owner", kind: "person" }, sequence: 60, at: AT } as const;
    const approval = {
      approvalId: "apr_1", key: "c", request: { kind: "shell", command: "make", cwd: "." }, redacted: false, digest: "d", risk: "low",
      workspace: { id: "wsp_1", label: "harbor" }, actor: { id: "demo", kind: "agent", runId: "run_1" },
      reason: "", expiresAt: AT, sequence: 59, at: AT, snoozedUntil: null, resolution, used: true,
    } as const;
    expect(textOf({ ...frame, kind: "approval", approval })).toContain("#60");
  });

  it("of a command shows whole lines, though the other stream spoke amid one", () => {
    const call = { call: "c", tool: "shell", summary: "make", idempotent: false };
    const output = ["stdout", "stderr", "stdout"].map((stream, index) => ({ stream, text: ["ok 6 - a sta", "not ok 7\n", "y\n"][index] ?? "", omitted: 0 }));
    expect(textOf({ ...frame, kind: "tool", call, output, result: null }, true)).toContain("ok 6 - a stay\nnot ok 7\n");
  });

  it.each<[string, RuntimeError, boolean]>([
    ["Notice", { message: "the first 4 messages are summarised for the model from now on", retrying: false }, false],
    ["Runtime error", { message: "house failed with inference.overloaded; attempt 1 follows in 10 ms", retrying: true }, true],
    ["Runtime error", { message: "It ended.", retrying: false, failureKind: "backend-failed" }, true],
  ])("of what a backend tells is a %s", (name, error, isWrong) => {
    const { container } = render(
      <EventRow
        runId="run_1" row={{ ...frame, kind: "runtime", error }} position={0} total={1} selected={false} open={false}
        measure={nothing} onSelect={nothing} onToggle={nothing}
      />,
    );
    expect(container.textContent).toContain(name);
    expect(container.textContent).toContain(error.message);
    expect(container.querySelector("article")?.className.includes("ev--err")).toBe(isWrong);
  });

  it("of a recorded conversation claims no state of the run", async () => {
    expect(textOf({ ...frame, kind: "thread" })).toContain("Conversation recorded");
    cleanup();
    await setLanguage("zh");
    expect(textOf({ ...frame, kind: "thread" })).toContain("已记录对话");
  });

  it("of a word says whether it is still on its way", () => {
    const command = { commandId: "cmd_1", command: "steer", text: "Be brief.", actor: { id: "ada", kind: "person" } } as const;
    expect(textOf({ ...frame, kind: "command", command, unheard: true })).toContain("by ada· on its way to the agent");
    cleanup();
    expect(textOf({ ...frame, kind: "command", command })).not.toContain("on its way");
    cleanup();
    expect(textOf({ ...frame, kind: "heard" })).toContain("Heard by the agent");
  });

  it("of a cancel while something is applied says what happens, who wanted it and why", async () => {
    const requested = { by: { id: "ada", kind: "person" }, reason: "Not now." } as const;
    const text = textOf({ ...frame, kind: "cancelling", requested });
    for (const part of ["Cancelling:", "what was written is taken back", "by ada", "Not now."]) expect(text).toContain(part);
    cleanup();
    await setLanguage("zh");
    expect(textOf({ ...frame, kind: "cancelling", requested })).toContain("正在取消：");
  });

  it("of an apply that took too long says so in the reader's language", async () => {
    await setLanguage("zh");
    const error = { message: "Applying took longer than allowed, and what was written by then is taken back.", retrying: false };
    expect(textOf({ ...frame, kind: "runtime", error })).toContain("应用更改超过了允许的时间");
  });

  it("of a patch names its one file once", () => {
    const text = textOf({ ...frame, kind: "patch", patch: { files: ["docs/a.md"], summary: "wrote docs/a.md" } });
    expect(text.match(/docs\/a\.md/g)).toHaveLength(1);
  });

  it("of a patch of several files names them", () => {
    expect(textOf({ ...frame, kind: "patch", patch: { files: ["a.md", "b.md"], summary: "a.md, b.md" } })).toContain("2 filesa.md, b.md");
  });
});

describe("what a run runs on", () => {
  const started = (checks: Record<string, string>) => view({ started: { backendKind: "b", protocol: "p", checks } });

  it("is said as briefly as there is room for, in both languages", async () => {
    const usual = started({
      checkout: "a private clone of main, 14 files, 9000 bytes; 2 untracked",
      sandbox: "bubblewrap: writes only in its checkout and home, no network but the gateway",
    });
    expect([baseText(usual), sandboxText(usual)]).toEqual(["a private clone of main", "bubblewrap: writes only in its checkout and home"]);
    await setLanguage("zh");
    expect([baseText(usual), sandboxText(usual)]).toEqual(["main 的私有克隆", "bubblewrap 沙箱：只能写入其检出副本和主目录"]);
  });

  it("is said in full where it is not what is usual", () => {
    const bare = started({ checkout: "kept as it was", sandbox: "none in force: the run's execution policy asks for none" });
    expect([baseText(bare), sandboxText(bare)]).toEqual(["kept as it was", "none in force: the run's execution policy asks for none"]);
  });
});

describe("the list of runs", () => {
  it("does not say that a run took no time", () => {
    const run = {
      id: "run_1", state: "failed", task: "Translate", agentId: "demo", workspace: { id: "wsp_1", label: "harbor" }, createdAt: AT, lastEventAt: AT,
      metrics: { wallMs: 178, activeMs: 10 },
    } as unknown as RunSummary;
    const { container } = render(<RunsTable runs={[run]} onMore={undefined} loading={false} />);
    expect(container.textContent).toContain("178 ms");
  });
});
