// C12: what left the inbox because somebody decided stays in view, with who it was.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fromList, type AskedState } from "../../src/pages/approvals/asked";
import { Gone, type Ask } from "../../src/pages/approvals/gone";

const asked = (id: string, state: AskedState) =>
  fromList({ id, runId: "run_1", state, title: "", request: { kind: "shell", command: "ls", cwd: "." }, redacted: false, digest: "d", risk: "low", reason: "", workspace: { id: "w", label: "ws" }, agentId: "a", expiresAt: "2030-01-01T00:00:00Z", decidedBy: { id: "bob", kind: "person" } });

describe("an approval that is listed no more", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** An inbox whose hub gives these answers, one after the other, and then the last of them. */
  function inbox(...answers: Awaited<ReturnType<Ask>>[]) {
    const calls: string[] = [];
    const gone = new Gone(async (id) => {
      calls.push(id);
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? { ok: false };
    });
    const leave = gone.subscribe(() => undefined);
    return { calls, gone, leave, ids: () => gone.get().map((one) => [one.id, one.decided?.by]) };
  }
  const answered = () => vi.advanceTimersByTimeAsync(0);
  const later = () => vi.advanceTimersByTimeAsync(60_000);

  it("stays, with who decided", async () => {
    const { gone, calls, ids } = inbox({ ok: true, asked: asked("apr_1", "rejected") });
    gone.list(["apr_1", "apr_2"]);
    gone.list(["apr_2"]);
    await answered();
    expect(ids()).toEqual([["apr_1", "bob"]]);
    gone.list(["apr_2"]);
    await later();
    expect(calls).toEqual(["apr_1"]);
  });

  it("is asked about again where that failed, until it is known", async () => {
    const { gone, calls, ids } = inbox({ ok: false }, { ok: false }, { ok: true, asked: asked("apr_1", "approved") });
    gone.list(["apr_1"]);
    gone.list([]);
    await answered();
    expect([ids(), calls.length]).toEqual([[], 1]);
    await later();
    expect([ids(), calls.length]).toEqual([[["apr_1", "bob"]], 3]);
  });

  it("is asked about at once where the list was read again", async () => {
    const { gone, ids } = inbox({ ok: false }, { ok: true, asked: asked("apr_1", "approved") });
    gone.list(["apr_1"]);
    gone.list([]);
    await answered();
    gone.list([]);
    await answered();
    expect(ids()).toEqual([["apr_1", "bob"]]);
  });

  it("is nothing to tell of where it is still open, or was never there", async () => {
    for (const one of [asked("apr_1", "open"), null]) {
      const { gone, calls, ids } = inbox({ ok: true, asked: one });
      gone.list(["apr_1"]);
      gone.list([]);
      await later();
      expect([ids(), calls.length]).toEqual([[], 1]);
    }
  });

  it("is not asked about any more by a page that was left", async () => {
    const { gone, calls, leave } = inbox({ ok: false });
    gone.list(["apr_1"]);
    gone.list([]);
    await answered();
    leave();
    await later();
    expect(calls).toHaveLength(1);
  });
});
