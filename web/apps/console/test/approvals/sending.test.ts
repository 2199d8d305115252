import { describe, expect, it } from "vitest";
import { byRisk, fromList, isSnoozed, meaningOf, timeOf, type Asked } from "../../src/pages/approvals/asked";
import { resolveInput } from "../../src/pages/approvals/decide";
import { draftOf } from "../../src/ui/schema-form";
import { answerOf, choicesIn, misfits } from "../../src/pages/approvals/question";
import { readAsk } from "../../src/pages/approvals/request";
import { freshKey, IDLE, next, Stages, type Stage } from "../../src/pages/approvals/sending";
import { untilTomorrow } from "../../src/pages/approvals/snooze";

const refusal = (code: string) => ({ code, message: "no", issues: [] });
const sending: Stage = { kind: "sending", says: "approve", key: "k1", answered: false };

describe("a decision on its way", () => {
  it("is one call, however often it is clicked", () => {
    const stages = new Stages();
    expect(stages.step("apr", { kind: "send", says: "approve", key: "k1" })).toBe(true);
    expect(stages.step("apr", { kind: "send", says: "approve", key: "k2" })).toBe(false);
    expect(stages.step("apr", { kind: "send", says: "reject", key: "k3" })).toBe(false);
    expect(stages.get("apr")).toEqual(sending);
  });

  it("counts as sending until the run's event is there, even when the hub has answered", () => {
    const answered = next(sending, { kind: "accepted" });
    expect(answered).toEqual({ ...sending, answered: true });
    expect(next(answered, { kind: "dismiss" })).toBe(answered);
    expect(next(answered, { kind: "resolved" })).toBe(IDLE);
  });

  it("says that the content changed and sends nothing again by itself", () => {
    const stale = next(sending, { kind: "failed", refusal: refusal("CONFLICT"), found: "changed" });
    expect(stale).toEqual({ kind: "stale", says: "approve" });
    expect(next(sending, { kind: "failed", refusal: refusal("CONFLICT"), found: "same" }).kind).toBe("stale");
    expect(next(stale, { kind: "dismiss" })).toBe(IDLE);
  });

  it("that comes too late says so, also where the event was there before the answer", () => {
    const failed = { kind: "failed", refusal: refusal("CONFLICT"), found: "over" } as const;
    expect(next(sending, failed)).toEqual({ kind: "late" });
    const told = next(next(sending, { kind: "resolved" }), failed);
    expect(told).toEqual({ kind: "late" });
    expect(next(told, { kind: "resolved" })).toBe(told);
  });

  it("is not called too late where it may itself be the one that counts", () => {
    expect(next(sending, { kind: "failed", refusal: refusal("CONNECTION_FAILED"), found: "over" })).toBe(IDLE);
  });

  it("does not say that the content changed where nobody could look", () => {
    expect(next(sending, { kind: "failed", refusal: refusal("CONFLICT"), found: "unknown" }).kind).toBe("refused");
  });

  it("uses the same key again where nobody knows whether it arrived, and only for the same decision", () => {
    const unsure = next(sending, { kind: "failed", refusal: refusal("CONNECTION_FAILED"), found: "same" });
    expect(unsure).toMatchObject({ kind: "unsure", key: "k1" });
    expect(next(unsure, { kind: "send", says: "approve", key: "k2" })).toMatchObject({ kind: "sending", key: "k1" });
    expect(next(unsure, { kind: "send", says: "reject", key: "k2" })).toMatchObject({ kind: "sending", key: "k2" });
  });

  it("says why the hub refused", () => {
    const refused = next(sending, { kind: "failed", refusal: refusal("AUTHORIZATION_ERROR"), found: "same" });
    expect(refused).toEqual({ kind: "refused", says: "approve", refusal: refusal("AUTHORIZATION_ERROR") });
  });

  it("says at which fields an answer was refused", () => {
    const issues = [{ path: ["answer", "nights"], message: "Expected 1 to 14." }, { path: ["digest"], message: "Unknown." }];
    const step = { kind: "failed", refusal: { ...refusal("VALIDATION_ERROR"), issues }, found: "same" } as const;
    const refused = next(sending, step);
    expect(misfits(refused)).toEqual([{ path: ["nights"], message: "Expected 1 to 14." }]);
    expect(misfits(next({ ...sending, says: "reject" }, step))).toEqual([]);
    expect(misfits(IDLE)).toEqual([]);
  });

  it("has a key that the hub takes and no other has", () => {
    expect(freshKey()).toMatch(/^console-[0-9a-f]{32}$/);
    expect(freshKey()).not.toBe(freshKey());
  });
});

describe("what is sent", () => {
  const asked = { id: "apr_1", digest: "d" };
  it("carries the digest of what was looked at", () => {
    expect(resolveInput(asked, { says: "approve", scope: "run" })).toEqual({ id: "apr_1", digest: "d", decision: "approve", scope: "run" });
    expect(resolveInput(asked, { says: "approve", scope: "once", answer: false })).toMatchObject({ answer: false });
    expect(resolveInput(asked, { says: "approve", scope: "once", selection: [{ file: "a" }] })).toMatchObject({ selection: [{ file: "a" }] });
  });

  it("says with a rejection whether the agent tries again", () => {
    expect(resolveInput(asked, { says: "reject", reason: "no" })).toEqual({ id: "apr_1", digest: "d", decision: "reject", reason: "no" });
    const back = resolveInput(asked, { says: "revise", reason: "see", comments: [{ file: "a", line: 3, text: "why" }] });
    expect(back).toMatchObject({ decision: "reject", revise: true, comments: [{ file: "a", line: 3, text: "why" }] });
  });
});

describe("approvals in a list", () => {
  const view = (id: string, risk: string): Asked =>
    fromList({ id, runId: "run_1", state: "open", title: "", request: { kind: "shell", command: "ls", cwd: "." }, redacted: false, digest: "d", risk, reason: "", workspace: { id: "w", label: "ws" }, agentId: "a", expiresAt: "2030-01-01T00:00:00Z" });

  it("stand by risk, and in each the oldest first; an unknown risk is a high one", () => {
    const groups = byRisk([view("apr_3", "low"), view("apr_2", "high"), view("apr_1", "high"), view("apr_0", "strange")]);
    expect(groups.map((group) => [group.risk, group.asked.map((asked) => asked.id)])).toEqual([["high", ["apr_0", "apr_1", "apr_2"]], ["low", ["apr_3"]]]);
  });

  it("know from their id when they were asked", () => {
    expect(timeOf("apr_018bcfe56800700000000000000000000")).toBe("2023-11-14T22:13:20.000Z");
    expect(timeOf("what")).toBeNull();
  });

  it("are snoozed until their time", () => {
    const snoozed = { ...view("apr_1", "low"), snoozedUntil: "2026-01-01T12:00:00Z" };
    expect(isSnoozed(snoozed, Date.parse("2026-01-01T11:59:59Z"))).toBe(true);
    expect(isSnoozed(snoozed, Date.parse("2026-01-01T12:00:00Z"))).toBe(false);
  });

  it("can be put off until tomorrow morning", () => {
    const hour = 3_600_000;
    expect(untilTomorrow(new Date(2026, 0, 31, 22))).toBe(11 * hour);
    expect(untilTomorrow(new Date(2026, 0, 1, 9))).toBe(24 * hour);
  });
});

describe("what a rejection means", () => {
  const ask = (raw: unknown) => readAsk(raw);
  it("follows the agent profile and the kind of request", () => {
    const shell = ask({ kind: "shell", command: "ls", cwd: "." });
    const apply = ask({ kind: "apply", stats: {}, files: [], to: "files" });
    expect([meaningOf(shell, "cancel"), meaningOf(shell, "continue"), meaningOf(shell, null)]).toEqual(["end", "tell", "unknown"]);
    expect([meaningOf(apply, "cancel"), meaningOf(apply, "continue")]).toEqual(["applyEnd", "keep"]);
    expect(meaningOf(ask({ kind: "repeat", step: "x" }), "continue")).toBe("fail");
  });
});

describe("questions", () => {
  it("offer choices as such", () => {
    expect(choicesIn({ enum: ["a", 2] })).toEqual([{ value: "a", label: "a" }, { value: 2, label: "2" }]);
    expect(choicesIn({ type: "boolean" })?.map((choice) => choice.value)).toEqual([true, false]);
    expect(choicesIn({ oneOf: [{ const: "x", title: "The x" }, { const: "y" }] })?.map((choice) => choice.label)).toEqual(["The x (x)", "y"]);
    expect(choicesIn({ type: "object", properties: {} })).toBeNull();
    expect(choicesIn({ oneOf: [{ type: "string" }] })).toBeNull();
  });

  it("are answered with exactly what was chosen", () => {
    const schema = { enum: ["main", null, 3] };
    expect(answerOf(schema, { kind: "choice", index: 2 })).toEqual({ ok: true, value: 3 });
    expect(answerOf(schema, { kind: "choice", index: 1 })).toEqual({ ok: true, value: null });
    expect(answerOf(schema, { kind: "nothing" })).toEqual({ ok: false, issues: [] });
  });

  it("is none yet while something that is required is missing, at any depth", () => {
    const place = { type: "object", properties: { berth: { type: "string" } }, required: ["berth"] };
    const schema = { type: "object", properties: { place, nights: { type: "integer" } }, required: ["nights", "place"] };
    const answer = (value: unknown) => answerOf(schema, { kind: "draft", draft: draftOf(schema, value) }).ok;
    expect([answer({}), answer({ nights: 2 }), answer({ nights: 2, place: {} })]).toEqual([false, false, false]);
    expect(answer({ nights: 2, place: { berth: "north" } })).toBe(true);
  });
});
