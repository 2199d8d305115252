// Both languages say the same, in the words of the documents.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { flat } from "../src/i18n";
import { en } from "../src/i18n/en";
import { zh } from "../src/i18n/zh";
import { callLabel } from "../src/pages/dev/deed";

const english = flat(en);
const chinese = flat(zh);
const ROOT = join(import.meta.dirname, "../../../..");

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name).sort();
}

/** What no language translates: names, units, and words of payloads. */
const NAMES = /^(Agent|Edge|Run|Diff|Diffs|JSON|Shell|CLI|curl|TypeScript|MCP|HTTP|Hub|id|English|Profile|Backend|action|git|push|commit|shell|tokens?|Runyard|stdout|stderr|Action|Envelope|Id|ms|SHA|[^\p{L}])*$/u;

/** The text without code and placeholders. */
function bare(text: string): string {
  return text.replace(/`[^`]*`|\{\w+\}/g, "");
}

describe("the dictionaries", () => {
  it("have the same keys", () => {
    expect([...chinese.keys()].sort()).toEqual([...english.keys()].sort());
  });

  it("have text everywhere", () => {
    // What reaches no further than the one request is not said.
    expect([...english, ...chinese].filter(([key, text]) => text.trim() === "" && key !== "approvals.reach.once")).toEqual([]);
  });

  it("have the same placeholders", () => {
    // A count of one needs no number in one language and may in the other.
    const names = (key: string, text: string) => placeholders(text).filter((name) => name !== "count" || !/(^|\.)one|[a-z]One$/.test(key));
    const wrong = [...english].filter(([key, text]) => names(key, text).join() !== names(key, chinese.get(key) ?? "").join());
    expect(wrong.map(([key, text]) => [key, text, chinese.get(key)])).toEqual([]);
  });

  it("are Chinese where Chinese is spoken", () => {
    const wrong = [...chinese].filter(([key, text]) => key !== "common.language.en" && !NAMES.test(bare(text)) && !/\p{Script=Han}/u.test(text));
    expect(wrong).toEqual([]);
  });

  it("leave no half of a sentence in English", () => {
    expect([...chinese].filter(([, text]) => /(?:[a-z]{3,}\s+){3,}[a-z]{3,}/i.test(bare(text)))).toEqual([]);
  });

  it("keep the words of the documents: Run, Edge, Hub and Agent are not translated", () => {
    expect([...chinese].filter(([, text]) => /边缘|代理|智能体|集线器|中枢/.test(text))).toEqual([]);
    for (const word of [/\bedges?\b/i, /\bhubs?\b/i, /\bagent profiles?\b/i]) {
      const latin = word.source.includes("agent") ? /profile/i : new RegExp(word.source.replaceAll("\\b", "").replace("s?", ""), "i");
      const wrong = [...english].filter(([key, text]) => word.test(bare(text)) && !latin.test(chinese.get(key) ?? ""));
      expect(wrong.map(([key, text]) => [key, text, chinese.get(key)])).toEqual([]);
    }
  });
});

describe("failures", () => {
  const codes = [...readFileSync(join(ROOT, "docs/errors.md"), "utf8").matchAll(/^\| `([^`]+)` \|/gm)].map(([, code = ""]) => code);

  it("the table of codes is read", () => {
    expect(codes.length).toBeGreaterThan(100);
  });

  it("every code has a title and a next step in both languages", () => {
    const keys = codes.flatMap((code) => [`failures.${code}.title`, `failures.${code}.next`]);
    expect(keys.filter((key) => !english.get(key) || !chinese.get(key))).toEqual([]);
  });

  it("no text says only that something went wrong", () => {
    const vague = [...english, ...chinese].filter(([, text]) => /something went wrong|an error occurred|unknown error|出错了|发生错误|未知错误/i.test(text));
    expect(vague).toEqual([]);
  });
});

/** Words that say nothing about what will happen, when they are all that a label says. */
const GENERIC = /^(continue|proceed|ok|okay|yes|no|confirm|approve|accept|submit|go|done|apply|allow|deny|reject|run|send|继续|确定|确认|批准|同意|好的?|是|否|提交|执行|应用|允许|拒绝|完成)[.!…。！]*$/i;
/** Words that no label of an effect holds at all. */
const BANNED = /\b(continue|proceed|ok|okay)\b|继续|确定|确认/i;

describe("labels of what takes effect", () => {
  const labels = [...english, ...chinese].filter(([key]) => /\.effect\./.test(key));

  it("are there", () => {
    expect(labels.length).toBeGreaterThan(4);
  });

  it("say verb, object and scope, and nothing generic", () => {
    expect(labels.filter(([, text]) => GENERIC.test(text) || BANNED.test(text))).toEqual([]);
  });

  it("come only from keys below `effect`: no other label stands on an amber or red button", () => {
    const wrong: string[] = [];
    for (const path of sources(join(import.meta.dirname, "../src"))) {
      if (path.endsWith("ui/button.tsx")) continue;
      const text = readFileSync(path, "utf8");
      for (const [button] of text.matchAll(/<Button\b[^>]*kind=(?:"(?:effect|danger)"|\{[^}]*"(?:effect|danger)"[^}]*\})[\s\S]*?<\/Button>/g)) {
        if (!/\.effect\.|effect\(|label\.text/.test(button)) wrong.push(`${path}: ${button.slice(0, 120)}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe("the button of an action on the dev page", () => {
  const actions = [...readFileSync(join(ROOT, "web/packages/client/src/generated/actions.ts"), "utf8").matchAll(/^  (\w+): \{ input:/gm)].map(([, name = ""]) => name);
  // The hub makes titles of names; an application may name an action by one word that says nothing.
  const titled = (name: string) => name.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ");
  const all = [...actions, "task_create", "task_delete", "run", "submit", "apply", "continue"].map((name) => ({ name, title: titled(name) }));
  const label = (name: string, title: string, sideEffects: "read" | "write" | "destructive") => callLabel({ name, title, sideEffects }).text;

  it("the actions are read", () => {
    expect(actions.length).toBeGreaterThan(40);
  });

  it("says verb and object, and nothing generic, whatever the action is called", () => {
    const texts = all.flatMap(({ name, title }) => (["read", "write", "destructive"] as const).map((effects) => label(name, title, effects)));
    expect(texts.filter((text) => GENERIC.test(text) || !/\s/.test(text))).toEqual([]);
    expect(actions.map((name) => label(name, titled(name), "write")).filter((text) => BANNED.test(text))).toEqual([]);
  });

  it.each([
    ["run_cancel", "Run Cancel", "write", "Cancel run"],
    ["policy_rule_add", "Policy Rule Add", "write", "Add policy rule"],
    ["approval_snooze", "Approval Snooze", "write", "Snooze approval"],
    ["task_delete", "Delete a task for good", "destructive", "Delete a task for good"],
    ["run_list", "Run List", "read", "Call run_list (reads only)"],
    ["submit", "Submit", "write", "Call action: submit"],
  ] as const)("%s says what it does", (name, title, sideEffects, text) => {
    expect(label(name, title, sideEffects)).toBe(text);
  });
});

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
