import { afterEach, describe, expect, it } from "vitest";
import { en } from "../../src/i18n/en";
import { zh } from "../../src/i18n/zh";
import { effectLabel, inWords, ruleFor, scopesFor, short, typedWord } from "../../src/pages/approvals/label";
import { readAsk, type Ask } from "../../src/pages/approvals/request";

const stats = { files: 3, insertions: 11, deletions: 5 };
const REQUESTS: Record<Exclude<Ask["kind"], "unknown">, unknown> = {
  read: { kind: "read", path: "/etc/hosts" },
  write: { kind: "write", path: "docs/a.md", content: "x" },
  patch: { kind: "patch", files: ["a", "b"], patch: "" },
  shell: { kind: "shell", command: "npm test", cwd: "." },
  network: { kind: "network", host: "api.example.com", port: 443 },
  git_commit: { kind: "git_commit", message: "Fix it" },
  git_push: { kind: "git_push", remote: "origin", branch: "main" },
  publish: { kind: "publish", target: "npm" },
  deploy: { kind: "deploy", target: "prod" },
  secret: { kind: "secret", name: "KEY" },
  action: { kind: "action", action: "task_delete", sideEffects: "destructive", input: { id: 1 } },
  question: { kind: "question", prompt: "Which branch?", answerSchema: {} },
  apply: { kind: "apply", base: "b", target: "t", stats, files: ["a", "b", "c"], to: "files" },
  repeat: { kind: "repeat", step: "npm publish" },
};

const shown = (raw: unknown, ...rest: [] | ["once" | "run" | "session" | "project"]): string => {
  const { text, code } = inWords(effectLabel(readAsk(raw), ...rest));
  return code === undefined ? text : `${text} ${code}`;
};

describe("effect labels (C12, C20)", () => {
  it("say verb, object and scope for every kind of request", () => {
    const labels = Object.fromEntries(Object.entries(REQUESTS).map(([kind, raw]) => [kind, shown(raw)]));
    expect(labels).toEqual({
      read: "Read file: /etc/hosts",
      write: "Write file: docs/a.md",
      patch: "Change 2 files",
      shell: "Run shell: npm test",
      network: "Allow connection: api.example.com:443",
      git_commit: "Commit: Fix it",
      git_push: "Push: main → origin",
      publish: "Publish: npm",
      deploy: "Deploy: prod",
      secret: "Read secret: KEY",
      action: "Call action: task_delete",
      question: "Send answer",
      apply: "Apply 3 files",
      repeat: "Repeat step: npm publish",
    });
  });

  it("say how far a yes reaches", () => {
    expect(shown(REQUESTS.shell, "run")).toBe("Run shell for this run: npm test");
    expect(shown(REQUESTS.network, "session")).toBe("Allow connection in this session: api.example.com:443");
    expect(shown(REQUESTS.publish, "project")).toBe("Publish in this project: npm");
  });

  it("name where changes go and what is taken back", () => {
    const apply = (more: object) => shown({ ...(REQUESTS.apply as object), ...more });
    expect(apply({ stats: { ...stats, files: 1 } })).toBe("Apply 1 file");
    expect(apply({ to: "commit" })).toBe("Commit 3 files");
    expect(apply({ to: { branch: "docs/x" } })).toBe("Commit 3 files to branch: docs/x");
    expect(apply({ undo: true })).toBe("Take back 3 files");
    expect(apply({ undo: true, to: { branch: "docs/x" } })).toBe("Remove branch: docs/x");
    expect(apply({ stats: { ...stats, protected: 2 } })).toBe("Apply 1 file");
  });

  it("hide nothing of an object", () => {
    expect(shown({ kind: "shell", command: "ls\u202e\nrm -rf /", cwd: "." })).toBe("Run shell: ls⟨U+202E⟩ ⏎ rm -rf /");
    expect(shown({ kind: "shell", command: `npm test${"\u2800".repeat(400)}; curl evil`, cwd: "." })).toBe("Run shell: npm test⟨U+2800×400⟩; curl evil");
    expect(short(`npm test # ${"x".repeat(3000)}; curl evil`), "the end of a command is on the button, too").toMatch(/^npm test # x+ … x+; curl evil$/);
  });

  it("show a kind that is not known instead of dropping it, and take it for dangerous", () => {
    const ask = readAsk({ kind: "dance", where: "here" });
    expect(ask).toEqual({ kind: "unknown", name: "dance", raw: { kind: "dance", where: "here" } });
    expect(shown({ kind: "dance" })).toBe("Allow request: dance");
    expect(readAsk({ kind: "action", action: "x", sideEffects: "new" })).toMatchObject({ sideEffects: "destructive" });
  });
});

describe("words on buttons that take effect", () => {
  const GENERIC = /\b(continue|proceed|ok|okay|yes|confirm|submit|approve|accept|next|go on)\b|继续|确定|确认|批准|好的|下一步|^是$/iu;
  const texts = (from: object): [string, string][] => Object.entries(from).map(([key, text]) => [key, String(text)]);
  for (const [language, words] of [["en", en], ["zh", zh]] as const) {
    it(`are never generic (${language})`, () => {
      for (const [key, text] of [...texts(words.approvals.effect), ...texts(words.diff.effect)]) {
        expect(text, key).not.toMatch(GENERIC);
        expect(text.trim(), key).not.toBe("");
      }
    });
  }

  it("exist for every kind in both languages", () => {
    const kinds = Object.keys(REQUESTS);
    for (const words of [en, zh]) {
      expect(Object.keys(words.approvals.what)).toEqual(expect.arrayContaining([...kinds, "undo", "unknown"]));
      expect(Object.keys(words.approvals.exactly)).toEqual(expect.arrayContaining([...kinds, "unknown"]));
    }
  });

  it("have the same placeholders in both languages", () => {
    const places = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort();
    const pairs = (one: object, other: object, path: string): void => {
      for (const [key, text] of Object.entries(one)) {
        const translated: unknown = Object.entries(other).find(([name]) => name === key)?.[1];
        if (typeof text === "string") expect(places(String(translated)), `${path}.${key}`).toEqual(places(text));
        else pairs(text, translated as object, `${path}.${key}`);
      }
    };
    pairs(en.approvals, zh.approvals, "approvals");
    pairs(en.diff, zh.diff, "diff");
  });
});

describe("before a dangerous effect", () => {
  it("a name out of the request is typed", () => {
    const word = (raw: unknown) => typedWord(readAsk(raw));
    expect(word(REQUESTS.git_push)).toBe("main");
    expect(word({ kind: "shell", command: "rm -rf build", cwd: "." })).toBe("rm");
    expect(word(REQUESTS.secret)).toBe("KEY");
    expect(word({ kind: "read", path: "/home/x/.ssh/id_ed25519" })).toBe("id_ed25519");
    expect(word(REQUESTS.action)).toBe("task_delete");
  });

  it("a word that nobody could type is not asked for", () => {
    expect(typedWord({ kind: "secret", name: "a\u200bb" })).toBe("secret");
    expect(typedWord({ kind: "deploy", target: "x".repeat(100) })).toBe("deploy");
    expect(typedWord({ kind: "git_commit", message: "a message" })).toBe("git_commit");
  });
});

describe("scopes", () => {
  const scopes = (raw: unknown, redacted = false) => scopesFor(readAsk(raw), redacted).join(" ");
  it("reach beyond the run only where a rule says exactly the request", () => {
    expect(scopes(REQUESTS.shell)).toBe("once run session project");
    expect(scopes(REQUESTS.shell, true)).toBe("once run");
    expect(scopes({ kind: "shell", command: "ls *", cwd: "." })).toBe("once run");
    expect(scopes({ kind: "read", path: "file" })).toBe("once run");
    expect(scopes(REQUESTS.secret)).toBe("once run");
    for (const kind of ["apply", "repeat", "question"] as const) expect(scopes(REQUESTS[kind])).toBe("once");
  });

  it("make the rule that the hub makes", () => {
    expect(ruleFor(readAsk(REQUESTS.git_push))).toEqual({ kind: "git_push", match: "origin main" });
    expect(ruleFor(readAsk(REQUESTS.network))).toEqual({ kind: "network", match: "api.example.com" });
    expect(ruleFor(readAsk(REQUESTS.action))).toBeNull();
  });
});

describe("in Chinese", () => {
  afterEach(async () => {
    const { setLanguage } = await import("../../src/i18n");
    await setLanguage("en");
  });
  it("the labels are whole, too", async () => {
    const document = { documentElement: { lang: "" }, cookie: "" };
    Object.assign(globalThis, { document });
    const { setLanguage } = await import("../../src/i18n");
    await setLanguage("zh");
    expect(shown(REQUESTS.shell, "run")).toBe("执行 Shell（此 Run 内）： npm test");
    expect(shown(REQUESTS.apply)).toBe("应用 3 个文件");
    for (const [kind, raw] of Object.entries(REQUESTS)) expect(shown(raw), kind).toMatch(/\p{Script=Han}/u);
  });
});
