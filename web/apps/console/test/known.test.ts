// Sentences that are recorded in English are said in the reader's language. They are those that the Rust sources write.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { maybe, setLanguage } from "../src/i18n";
import { known } from "../src/i18n/en/known";
import { knownAs, told } from "../src/i18n/known";

const CRATES = join(import.meta.dirname, "../../../../crates");
const SOURCES = [
  "domain/src/gate/explain.rs", "domain/src/gate/command.rs", "edge/src/asks.rs", "edge/src/prepare.rs", "edge/src/sandbox.rs", "edge/src/granted.rs",
  "edge/src/projection.rs", "edge/src/ending.rs", "edge/src/review.rs", "edge/src/applying.rs", "engine/src/driver.rs",
  "engine/src/catalog.rs", "engine/src/timers.rs", "engine/src/translate.rs", "engine/src/carry.rs", "checkout/src/made.rs",
  "adapters/src/codex/conversation.rs", "adapters/src/codex/conversation/opening.rs", "adapters/src/codex/translate.rs",
];
/** A string that goes on in the next line is one string. */
const read = (file: string): string => readFileSync(join(CRATES, file), "utf8").replace(/\\\n\s*/g, "");
const source = SOURCES.map(read).join("\n");

/** Those that the sources put together from more than one string. */
const MADE_OF: Record<string, readonly string[]> = {
  cloneOf: ["a private clone{branch}, ", " of {branch}"],
  takeBack: ['"Take back"', "{verb} the changes of {of}"],
};

describe("the known sentences", () => {
  it("are written by the sources, word for word", () => {
    const missing = Object.entries(known).flatMap(([key, text]) => {
      const own = MADE_OF[key] ?? text.split(/\{\w+\}/).map((piece) => piece.replace(/^[\s,;:]+|[\s,;:]+$/g, ""));
      return own.filter((piece) => !source.includes(piece)).map((piece) => [key, piece]);
    });
    expect(missing).toEqual([]);
  });

  it("are all that a run can be degraded for, and all that stands in a constant of who says so", () => {
    const wholly = ["edge/src/granted.rs", "edge/src/sandbox.rs", "engine/src/timers.rs"].map(read).join("\n");
    const reasons = [
      ...[...wholly.matchAll(/const [A-Z_]+: &str =\s*"([^"]* [^"]*)"/g)].map(([, text = ""]) => text),
      ...[...source.matchAll(/reason(?: =|:) (?:format!\()?"([^"]* [^"]*)"/g)].map(([, text = ""]) => text),
      ...[...(read("checkout/src/made.rs").split("pub fn degraded")[1]?.split("\n    }\n")[0] ?? "").matchAll(/"([^"{]* [^"]*)"/g)].map(
        ([, text = ""]) => (/^(links|the checkout lacks)/.test(text) ? `${text}: x` : text),
      ),
    ].map((text) => text.replace(/\{\w+\}/g, "1"));
    expect(reasons.length).toBeGreaterThan(11);
    expect(reasons.filter((text) => knownAs(text) === undefined)).toEqual([]);
  });

  it("have beside them a name for every check, and for every tool of our own agent", () => {
    const checks = [...(/const CHECKS[^=]*=\s*\[([^\]]*)\]/.exec(read("edge/src/prepare.rs"))?.[1] ?? "").matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);
    const lines = read("edge/src/check.rs").matchAll(/(?:missing|there)\("(\w+)"|check = [^;]*?"(\w+)"(?: \} else \{ "(\w+)")?/g);
    const looked = [...lines].flatMap(([, ...names]) => names.filter(Boolean));
    const tools = [...(/^tools = \[([^\]]*)\]/m.exec(readFileSync(join(CRATES, "../docs/agents.md"), "utf8"))?.[1] ?? "").matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);
    expect([checks.length, new Set(looked).size, tools.length].map((count) => count > 4)).toEqual([true, true, true]);
    const keys = [...checks.map((name) => `run.check.${name}`), ...looked.map((name) => `system.check.${name}`), ...tools.map((name) => `run.tool.${name}`)];
    expect(keys.filter((key) => maybe(key) === undefined)).toEqual([]);
  });

  it("c11 are all that the gate can say of a request", () => {
    const says = read("domain/src/gate/explain.rs").split("impl fmt::Display for Because")[1]?.split("impl fmt::Display for Risk")[0] ?? "";
    const sentences = [...says.matchAll(/"([^"]* [^"]*)"/g)].map(([, text = ""]) => text.replace(/\{\w+\}/g, "x"));
    expect(sentences.length).toBeGreaterThan(30);
    expect(sentences.filter((text) => knownAs(text) === undefined)).toEqual([]);
  });
});

describe("in Chinese", () => {
  beforeAll(async () => {
    vi.stubGlobal("document", { documentElement: { lang: "en" }, cookie: "" });
    await setLanguage("zh");
  });
  afterAll(async () => {
    await setLanguage("en");
    vi.unstubAllGlobals();
  });

  it("a known sentence is translated with what stands in it, sentence in sentence", () => {
    expect(told("no rule covers the command, and commands are asked about")).toBe("没有规则涵盖该命令，而命令需要询问");
    expect(told("The backend was silent for more than 600000 ms.")).toBe("后端超过 600000 毫秒没有动静。");
    expect(told("the rule `r_1` of this run says so")).toBe("此 Run 的规则 `r_1` 如此规定");
    expect(told("bubblewrap: writes only in its home, no network")).toBe("bubblewrap 沙箱：只能写入其主目录，无网络");
    expect(told("it would be asked about (commits are asked about), and nobody may be asked")).toBe("本应询问（提交需要询问），但不允许询问任何人");
    expect(told("what `make` does is not looked into; only the sandbox bounds it")).toBe("不会查看 `make` 做什么，只有沙箱约束它");
    expect(told("a private clone of main, 6 files, 1884 bytes; 2 untracked")).toBe("main 的私有克隆，6 个文件，1884 字节；2 个未跟踪");
  });

  it("everything else stays as it was recorded", () => {
    for (const text of ["", "whatever", "one; two", "commits are asked about.", "x".repeat(5_000)]) expect(told(text)).toBe(text);
  });
});

it("in English a record is shown as it is", () => {
  expect(told("commits are asked about")).toBe("commits are asked about");
});
