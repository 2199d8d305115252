// What is copied is run here as it is: by a real shell, and as the program that it is.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asCommand, asCurl, asJson, asTypeScript, quoted, type DevCall } from "../../src/pages/dev/copy-as";

const AWKWARD = [
  `It's "$HOME" \`x\` \\ <b>bold</b>`,
  "two\nlines\ttab",
  "'", "''", `"`, "\\", "\\'", "$(exit 1)", "!!", "*", "~", "-n", "--confirm", "=ls", "", " ", "#no", "a b", "& ; | > <", "\u2028\u202e", "中文 🎉", "%s %d",
];

/** The words that a shell makes of a line. */
function wordsOf(line: string): string[] {
  const printed = execFileSync("sh", ["-c", `show() { printf '%s\\0' "$@"; }\nshow ${line}`], { encoding: "utf8" });
  return printed.split("\0").slice(0, -1);
}

/** A program that tells its words, in place of the one that is called. */
const asFunction = (line: string, name: string): string => line.replace(new RegExp(`^${name} `), "");

describe("a word for a shell", () => {
  it("comes out as it went in, whatever is in it", () => {
    expect(wordsOf(AWKWARD.map(quoted).join(" "))).toEqual(AWKWARD);
  });

  it("stays plain where that is safe, so that people can read it", () => {
    expect(quoted("task-create")).toBe("task-create");
    expect(quoted("http://127.0.0.1:4600/api/v1")).toBe("http://127.0.0.1:4600/api/v1");
  });

  it("holds for any text", () => {
    const texts = fc.array(fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")), { minLength: 1, maxLength: 20 });
    fc.assert(fc.property(texts, (all) => void expect(wordsOf(all.map(quoted).join(" "))).toEqual(all)), { numRuns: 40 });
  });
});

const CALL: DevCall = {
  input: { title: AWKWARD[0] ?? "", deep: [null, true, 1.5, { "odd name": "x", __proto__: "lost" }] },
  confirm: true,
  idempotencyKey: "it's mine",
  timeoutMs: 1500,
};

/** JSON's own way to have a property that a literal would not make. */
const WITH_PROTO: DevCall = { input: JSON.parse(`{"__proto__": {"a": 1}, "é": "\u2028"}`) };

describe("a call in other words", () => {
  it("is the same for the command line", () => {
    const words = wordsOf(asFunction(asCommand("runyard", "task_create", CALL), "runyard"));
    expect(words.slice(0, 3)).toEqual(["call", "task-create", "--json"]);
    expect(JSON.parse(words[3] ?? "")).toEqual(CALL.input);
    expect(words.slice(4)).toEqual(["--timeout-ms", "1500", "--idempotency-key", "it's mine", "--confirm"]);
  });

  it("is the same for curl, and the token stays in the environment", () => {
    const line = asCurl("http://127.0.0.1:4600", "task_create", CALL);
    expect(line).toContain(`"Authorization: Bearer $RUNYARD_TOKEN"`);
    const words = wordsOf(asFunction(line, "curl"));
    expect(words.slice(0, 3)).toEqual(["-X", "POST", "http://127.0.0.1:4600/api/v1/actions/task_create/invoke"]);
    expect(JSON.parse(words.at(-1) ?? "")).toEqual(CALL);
  });

  it("is the same as JSON", () => {
    expect(JSON.parse(asJson("task_create", CALL))).toEqual({ action: "task_create", ...CALL });
  });

  it("is the same in TypeScript", async () => {
    for (const call of [CALL, WITH_PROTO, { input: {} }]) {
      const { input, ...options } = call;
      const [name, given, more] = await told(asTypeScript("http://127.0.0.1:4600", "task_create", call));
      expect(name).toBe("task_create");
      expect(JSON.stringify(given)).toBe(JSON.stringify(input));
      expect(more ?? {}).toEqual(options);
    }
  });
});

/** Runs a program with a client that only tells what it was called with. */
async function told(program: string): Promise<unknown[]> {
  let heard: unknown[] = [];
  const createClient = () => ({ call: async (...given: unknown[]) => void (heard = given) });
  const body = program.replace(/^import .*\n/, "").replace(/^console\.log.*$/m, "");
  const run: unknown = new Function("createClient", "process", `return (async () => { ${body} })();`);
  if (typeof run === "function") await run(createClient, { env: {} });
  return heard;
}
