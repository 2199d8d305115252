// C22: whether what was applied was taken back is known only where the later runs were read, and one undo is one call.
import { describe, expect, it } from "vitest";
import { takenBackBy, Undos, type Listed } from "../../src/pages/run/taken-back";

const ID = `run_${"0a".repeat(16)}`;
const undo = (id: string, state: Listed["runs"][number]["state"]) => ({ id, state, task: `Take back the changes of ${ID}` });
const list = (more: Partial<Listed> = {}): Listed => ({ runs: [], next: null, loading: false, error: null, ...more });
const error = { code: "INTERNAL_ERROR", message: "no", issues: [], retryable: false };

describe("what was applied", () => {
  it("is there only where all later runs were read and none takes it back", () => {
    expect(takenBackBy(ID, list({ runs: [{ id: ID, state: "completed", task: "Count" }] }), null)).toEqual({ kind: "no" });
    expect(takenBackBy(ID, list({ runs: [undo("run_2", "cancelled")] }), null)).toEqual({ kind: "no" });
  });

  it("is not known to be there before they are read, when that failed, and while some are left", () => {
    expect(takenBackBy(ID, list({ loading: true }), null)).toEqual({ kind: "unknown", error: null });
    expect(takenBackBy(ID, list({ error }), null)).toEqual({ kind: "unknown", error });
    expect(takenBackBy(ID, list({ next: "run_1" }), null)).toEqual({ kind: "unknown", error: null });
  });

  it("is gone where one run says so, whatever else could not be read", () => {
    const runs = [undo("run_3", "running"), undo("run_2", "completed")];
    expect(takenBackBy(ID, list({ runs, error, next: "run_1" }), null)).toEqual({ kind: "done", by: "run_2" });
    expect(takenBackBy(ID, list({ runs: runs.slice(0, 1), loading: true }), null)).toEqual({ kind: "asked", by: "run_3" });
  });

  it("is being taken back as soon as that was started here, and no longer than the run of it", () => {
    expect(takenBackBy(ID, list(), "run_2")).toEqual({ kind: "asked", by: "run_2" });
    expect(takenBackBy(ID, list({ runs: [undo("run_2", "failed")] }), "run_2")).toEqual({ kind: "no" });
  });
});

describe("an undo", () => {
  it("has one key until it has led to a run, and the next one another", () => {
    const undos = new Undos();
    const first = undos.key(ID);
    expect(undos.key(ID)).toBe(first);
    expect(undos.key("run_other")).not.toBe(first);
    expect(undos.begun(ID)).toBeNull();
    undos.led(ID, "run_2");
    expect(undos.begun(ID)).toBe("run_2");
    expect(undos.key(ID)).not.toBe(first);
  });
});
