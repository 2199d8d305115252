// @vitest-environment happy-dom
import { act, cleanup, render, renderHook, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { askedText } from "../../src/pages/audit/asked-for";
import { actorOf, approvalOf, found, runOf, shortHash, typeText, useEntries, whatText, type Entry } from "../../src/pages/audit/entries";
import { AuditTab } from "../../src/pages/audit/tab";
import { EntryTable } from "../../src/pages/audit/table";
import type { Reading } from "../../src/pages/run/run-context";
import { before, hub, log, SCENE_MS_MAX, settle, show, shownRun } from "../approvals/scene";

vi.setConfig({ testTimeout: SCENE_MS_MAX });
afterEach(cleanup);

const RUN = "run_018bcfe5680077078707070707070707";
const ADA = { id: "ada", kind: "person" };

function entry(sequence: number, type: string, what: unknown, by: unknown = ADA): Entry {
  return { sequence, at: "2026-11-16T08:00:00.000Z", type, by, what, hash: `${sequence}`.padStart(64, "0") };
}

/** One of each type that the installation's log knows, with what its line says. */
const LINES: [Entry, string][] = [
  [entry(1, "installation.opened", {}), ""],
  [entry(2, "audit.login", { how: "http" }), "http"],
  [entry(3, "audit.workspace", { change: "added", workspaceId: "wsp_1", label: "docs" }), "added · docs"],
  [entry(4, "audit.decision", { approvalId: "apr_1", runId: RUN, resolution: "rejected", digest: "d", reason: "Not now" }), "Rejected · apr_1 · Not now"],
  [entry(5, "audit.applied", { runId: RUN, approvalId: "apr_2", digest: "d", commit: "4c1e09a" }), "apr_2 · 4c1e09a"],
  [entry(6, "audit.refused", { action: "token_create", repeated: 3 }), "token_create · 3 times before"],
  [entry(7, "audit.trust", { path: "runyard.toml", digest: "d" }), "runyard.toml"],
  [entry(16, "audit.trust.revoked", { path: "runyard.toml", digest: "d" }), "runyard.toml"],
  [entry(17, "audit.policy", { workspace: "site", rules: [{ effect: "deny", kind: "shell", match: "rm *" }] }), "site · deny shell rm *"],
  [entry(8, "audit.secret", { runId: RUN, profile: "codex", keys: ["auth.json"], how: "gateway" }), "codex · auth.json"],
  [entry(9, "audit.session", { sessionId: "ses_1" }), "ses_1"],
  [entry(10, "installation.token.created", { tokenId: "tok_1", name: "bob", role: "viewer", digest: "d" }), "bob · viewer"],
  [entry(11, "installation.token.revoked", { tokenId: "tok_1", name: "bob" }), "bob"],
  [entry(12, "installation.rule.added", { ruleId: "rul_1", rule: { effect: "allow", kind: "shell", match: "cargo test *" } }), "allow shell cargo test * · rul_1"],
  [entry(13, "installation.rule.removed", { ruleId: "rul_1", rule: { effect: "deny", kind: "any" } }), "deny any · rul_1"],
  [entry(14, "installation.rule.used", { ruleId: "rul_2" }), "rul_2"],
];

describe("an entry of the audit", () => {
  it("says in a line what was done", () => {
    expect(LINES.map(([each]) => whatText(each))).toEqual(LINES.map(([, line]) => line));
  });

  it("names what was decided where the run's events know it", () => {
    const shell = askedText({ kind: "shell", command: "cargo test" });
    expect(shell).toContain("cargo test");
    expect(askedText({ kind: "write", path: "docs/config.md" })).toContain("docs/config.md");
    const decision = LINES.find(([each]) => each.type === "audit.decision")?.[0] ?? entry(1, "", {});
    expect(approvalOf(decision)).toBe("apr_1");
    expect(whatText(decision, shell)).toBe(`Rejected · ${shell} · apr_1 · Not now`);
  });

  it("has a name for its type, and one of a later version stays as it is", () => {
    for (const [each] of LINES) expect(typeText(each.type)).not.toBe(each.type);
    expect(typeText("audit.later")).toBe("audit.later");
    expect(whatText(entry(1, "audit.later", { any: 1 }))).toBe("");
  });

  it("spells out what a reason would hide", () => {
    expect(whatText(entry(1, "audit.decision", { resolution: "approved", reason: "ok\u202e" }))).toContain("⟨U+202E⟩");
  });

  it("names its run and its actor, whatever shape they come in", () => {
    expect(LINES.map(([each]) => runOf(each)).filter(Boolean)).toEqual([RUN, RUN, RUN]);
    expect([actorOf(entry(1, "x", {}, ADA)), actorOf(entry(1, "x", null, null))]).toEqual([ADA, { id: "", kind: "" }]);
  });

  it("is found by type and by who, the newest first", () => {
    const entries = [entry(1, "audit.login", {}), entry(2, "audit.login", {}, { id: "Bob", kind: "person" }), entry(3, "audit.trust", {})];
    expect(found(entries, {}).map(({ sequence }) => sequence)).toEqual([3, 2, 1]);
    expect(found(entries, { type: "audit.login", actor: " bo" }).map(({ sequence }) => sequence)).toEqual([2]);
    expect(found(entries, { actor: "eve" })).toEqual([]);
  });

  it("has a hash that can be compared by eye", () => {
    expect(shortHash("852377c3aaaaaaaaaaaa1458cf4b")).toBe("852377c3…1458cf4b");
  });
});

describe("the table of entries", () => {
  it("has its head inside what scrolls, so that head and rows have the same columns", () => {
    render(<EntryTable entries={LINES.map(([each]) => each)} label="Audit" about={() => undefined} />);
    expect(screen.getByRole("rowgroup").contains(screen.getByRole("columnheader", { name: "Hash" }))).toBe(true);
  });
});

describe("reading the audit", () => {
  it("is over when its last page is there, and not called so before or where that failed", async () => {
    const pages = [{ data: { entries: [LINES[0]?.[0]], next: 1 } }, { code: "INTERNAL_ERROR" }, { data: { entries: [LINES[1]?.[0]] } }];
    const { client } = hub({ audit_list: () => pages.shift() ?? { code: "INTERNAL_ERROR" } });
    const { result } = renderHook(() => useEntries(), { wrapper: before(client) });
    await settle();
    expect([result.current.entries.length, result.current.error?.code, result.current.readAt]).toEqual([1, "INTERNAL_ERROR", null]);
    act(() => result.current.readOn());
    await settle();
    expect([result.current.entries.length, result.current.readAt === null]).toEqual([2, false]);
  });

  it("of a run stays in view while what was missed of the run is read", async () => {
    let read: (reading: Reading | null) => void = () => undefined;
    const run = shownRun(log("rejected"));
    const Tab = () => {
      const [reading, setReading] = useState<Reading | null>({ at: 1, of: 9 });
      read = setReading;
      return <AuditTab run={{ ...run, reading }} />;
    };
    await show(hub({}).client, <Tab />);
    const chain = () => screen.queryByText("runyard audit key");
    expect(chain()).toBeNull();
    act(() => read(null));
    expect(chain()).not.toBeNull();
    act(() => read({ at: 1, of: 9 }));
    expect(chain()).not.toBeNull();
  });
});
