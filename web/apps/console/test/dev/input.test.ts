// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import { deed, fitting } from "../../src/pages/dev/deed";
import { EMPTY, inputOf, readCall, switched } from "../../src/pages/dev/input";
import { pretty } from "../../src/pages/dev/pretty";
import { forgetCalls, pastCalls, rememberCall, rememberedInput, rememberInput } from "../../src/pages/dev/remembered";

const ACTION = {
  name: "task_delete",
  version: "1.0.0",
  title: "Task Delete",
  description: "Delete a task for good.",
  inputSchema: { type: "object", properties: { id: { type: "string" }, count: { type: "integer" } } },
  outputSchema: {},
  sideEffects: "destructive" as const,
  requiresConfirmation: true,
  peopleOnly: false,
  permissions: [],
  supportedSurfaces: [],
  timeoutMs: null,
  examples: [],
};

beforeEach(() => sessionStorage.clear());

describe("an input", () => {
  it("is sent with its options, and says what cannot be read", () => {
    const input = { ...inputOf(ACTION, { id: "tsk_1" }), timeout: " 1500 ", key: "k" };
    expect(readCall(ACTION, input)).toEqual({ ok: true, call: { input: { id: "tsk_1" }, confirm: true, idempotencyKey: "k", timeoutMs: 1500 } });
    const wrong = readCall(ACTION, { ...EMPTY, mode: "json", json: "{", timeout: "soon" });
    expect(wrong.ok ? null : [wrong.problems.issues.length, wrong.problems.timeout !== undefined]).toEqual([1, true]);
  });

  it("goes from form to JSON and back, and stays JSON where a form could not show it", () => {
    const form = inputOf(ACTION, { id: "a", count: 2 });
    const json = switched(ACTION, form, "json").input;
    expect(JSON.parse(json.json)).toEqual({ id: "a", count: 2 });
    expect(switched(ACTION, json, "form").input).toEqual({ ...form, json: json.json });
    const odd = { ...json, json: `{"other": 1}` };
    const stays = switched(ACTION, odd, "form");
    expect([stays.input, stays.issues.length]).toEqual([odd, 1]);
    expect(inputOf(ACTION, { other: 1 }).mode).toBe("json");
  });

  it("is remembered for the tab with the calls, each once, the latest first", () => {
    const typed = { ...EMPTY, draft: { fields: ["half", "9007199254740993"] } };
    rememberInput("task_delete", typed);
    expect(rememberedInput("task_delete")).toEqual(typed);
    expect(rememberedInput("other")).toBeNull();
    const call = (id: string, outcome: string) => ({ at: id + outcome, input: { id }, timeout: "", key: "", outcome, durationMs: 1 });
    for (const id of ["a", "b", "a"]) rememberCall("task_delete", call(id, id === "b" ? "NOT_FOUND" : "ok"));
    expect(pastCalls("task_delete").map(({ input, outcome }) => [input, outcome])).toEqual([[{ id: "a" }, "ok"], [{ id: "b" }, "NOT_FOUND"]]);
    for (let number = 0; number < 40; number += 1) rememberCall("task_delete", call(String(number), "ok"));
    expect(pastCalls("task_delete").length).toBeLessThan(40);
    expect(forgetCalls("task_delete")).toEqual(pastCalls("task_delete"));
  });
});

describe("words", () => {
  it("say what an action does, verb first, unless somebody wrote its title", () => {
    expect(deed(ACTION)).toBe("Delete task");
    expect(deed({ name: "run_list", title: "Run List" })).toBe("Run list");
    expect(deed({ name: "task_delete", title: "Burn it down" })).toBe("Burn it down");
  });

  it("find actions by name first", () => {
    const action = (name: string, description = "") => ({ name, title: name, description });
    const all = [action("run_events", "task"), action("task_create"), action("task")];
    expect(fitting(all, "task").map(({ name }) => name)).toEqual(["task", "task_create", "run_events"]);
    expect(fitting(all, "task  cre").map(({ name }) => name)).toEqual(["task_create"]);
  });

  it("hide nothing in JSON, and leave it JSON", () => {
    const value = { "a\u202e": "b\u200b\u0007\u{e0041}", line: "x\ny" };
    expect(pretty(value)).not.toMatch(/[\u202e\u200b\u{e0041}]/u);
    expect(JSON.parse(pretty(value))).toEqual(value);
  });
});
