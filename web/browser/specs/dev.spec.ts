// The dev page: forms from schemas, calls, what they say as they go, and the same call elsewhere.
// clause: A04
// clause: A20
// clause: A21
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Locator, Page } from "@playwright/test";
import { violations } from "../support/accessibility.ts";
import { eventually } from "../support/api.ts";
import { test as base, expect } from "../support/test.ts";
import { Yard } from "../support/yard.ts";

const AWKWARD = `It's "$HOME" \`x\` \\ <b id="evil">bold</b>`;

/** Where the action that waits leaves its process id. */
const PID_FILE = join(tmpdir(), `runyard-dev-${process.pid}.pid`);

/** Commands as actions: all that a form can have, what is rare in a schema, one that reports, one that goes on until it is stopped. */
const ACTIONS = `
[actions.shapes]
description = "Gives its input back."
command = ["cat"]
[actions.shapes.input]
type = "object"
additionalProperties = false
[actions.shapes.input.properties]
text = { type = "string", description = "Some lines of text." }
count = { type = "integer", minimum = 1, default = 3, description = "How often." }
ratio = { type = "number" }
flag = { type = "boolean" }
kind = { enum = ["a", "b"] }
tags = { type = "array", items = { type = "string" } }
place = { type = "object", properties = { x = { type = "integer" }, y = { type = "integer" } } }
any = {}

[actions.odd]
description = "Has an odd schema.\\U000E0041\\u200B"
command = ["cat"]
[actions.odd.input]
type = "object"
[actions.odd.input.properties]
either = { anyOf = [true, { type = "integer" }], description = "Anything at all." }
never = false
said = { anyOf = [{ type = "string" }, { type = "object" }] }
big = { type = "integer" }
ratio = { type = ["number", "null"] }
rows = { type = "array", items = { type = "object", properties = { x = { type = "integer" } } } }
toString = { type = "string" }

[actions.steps]
description = "Does something in steps."
command = ["sh", "-c", '''
cat >/dev/null
echo 'first <b>' >&2
echo '{"type": "progress", "percent": 50, "message": "half"}' >&2
echo '{"type": "artifact", "artifact": {"name": "report.txt"}}' >&2
echo second >&2
echo 9007199254740993
''']

[actions.wait]
description = "Goes on until it is stopped."
command = ["sh", "-c", 'echo $$ > ${PID_FILE}; echo waiting >&2; exec sleep 600']
`;

const test = base.extend<object, { yard: Yard }>({
  yard: [
    async ({}, use) => {
      const yard = await Yard.start({ more: ACTIONS });
      await use(yard);
      await yard.hub.remove();
      rmSync(PID_FILE, { force: true });
    },
    { scope: "worker" },
  ],
});

/** The dev page as a person uses it. */
class Dev {
  constructor(readonly page: Page) {}

  async open(action: string): Promise<void> {
    await this.page.goto(`/dev/${action}`);
    await expect(this.page.locator("#dev-name")).toHaveText(action);
  }

  /** By the filter and the keyboard, as somebody who knows the name. */
  async choose(action: string): Promise<void> {
    await this.filter.fill(action);
    await this.filter.press("Enter");
    await expect(this.page.locator("#dev-name")).toHaveText(action);
  }

  get filter(): Locator {
    return this.page.getByRole("searchbox", { name: "Filter actions" });
  }

  field(name: string): Locator {
    return this.page.locator(`.devinput [data-field="${name}"]`);
  }

  control(name: string): Locator {
    return this.page.locator(".devinput").getByLabel(name, { exact: true });
  }

  get json(): Locator {
    return this.page.getByLabel("Input as JSON");
  }

  async as(mode: "Form" | "JSON"): Promise<void> {
    await this.page.getByRole("group", { name: "How to give the input" }).getByRole("button", { name: mode }).click();
  }

  async run(): Promise<void> {
    await this.page.getByRole("button", { name: /^Run…?$/ }).click();
  }

  async runTo(state: string | RegExp): Promise<void> {
    await this.run();
    await expect(this.page.locator("#dev-state")).toContainText(state);
  }

  async envelope(): Promise<{ data: unknown; meta: { surface: string } }> {
    return JSON.parse((await this.page.locator(".result__envelope").textContent()) ?? "");
  }

  async copy(name: string): Promise<string> {
    await this.page.getByRole("group", { name: "Copy as" }).getByRole("button", { name, exact: true }).click();
    await expect(this.page.locator("[data-copied]")).toHaveAttribute("data-copied", name);
    return this.page.evaluate(() => navigator.clipboard.readText());
  }
}

test("puts issues to their fields, runs an action, and shows what it says as text", async ({ page }) => {
  const dev = new Dev(page);
  await page.goto("/dev");
  await page.locator(".devlist a").first().waitFor();
  await page.keyboard.press("/");
  await expect(dev.filter).toBeFocused();
  await dev.choose("task_create");
  await dev.runTo("VALIDATION_ERROR");
  await expect(dev.field("title").locator(".issue")).toHaveText("Required value is missing.");
  await expect(dev.control("title")).toBeFocused();
  await dev.control("title").fill(AWKWARD);
  await dev.control("priority").selectOption({ index: 3 });
  await page.getByRole("button", { name: "Add to tags" }).click();
  await dev.control("tags 1").fill("home");
  await dev.runTo("Done");
  const { data, meta } = await dev.envelope();
  expect(data).toMatchObject({ title: AWKWARD, priority: "high", tags: ["home"] });
  expect(meta.surface).toBe("dev");
  await expect(page.locator(".issue")).toHaveCount(0);
  await expect(page.getByRole("log").getByText("task created")).toBeVisible();
  await expect(page.locator("#evil")).toHaveCount(0);
});

test("copies a call that gives the same elsewhere", async ({ page, yard, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: yard.hub.url });
  const dev = new Dev(page);
  await dev.open("shapes");
  await dev.control("text").fill(AWKWARD);
  await dev.control("count").fill("4");
  await dev.runTo("Done");
  const { data } = await dev.envelope();
  const env = { ...process.env, RUNYARD_TOKEN: await yard.hub.token(), RUNYARD_HOME: yard.hub.home };
  const shell = promisify(execFile);
  const curl = await shell("sh", ["-c", `${await dev.copy("curl")} -s`], { env });
  expect(JSON.parse(curl.stdout)).toMatchObject({ ok: true, data, meta: { surface: "http" } });
  const words = (await dev.copy("CLI")).replace(/^runyard /, '"$0" ');
  const { binary } = await import("../support/hub.ts");
  const cli = await shell("sh", ["-c", words, binary()], { env });
  expect(JSON.parse(cli.stdout)).toMatchObject({ ok: true, data, meta: { surface: "cli" } });
  const { action, input } = JSON.parse(await dev.copy("JSON"));
  expect([action, input]).toEqual(["shapes", { text: AWKWARD, count: 4 }]);
  expect(await dev.copy("TypeScript")).toContain(`client.call("shapes", {`);
});

test("asks before it destroys, and only with what is typed", async ({ page, yard }) => {
  const task = await yard.api.post<{ id: string }>("/tasks", { title: "Sweep" });
  const dev = new Dev(page);
  await dev.open("task_delete");
  await dev.control("id").fill(task.id);
  await dev.run();
  const dialog = page.getByRole("dialog");
  const yes = dialog.getByRole("button", { name: "Delete task" });
  await expect(yes).toHaveAttribute("aria-disabled", "true");
  await expect(yes).not.toBeFocused();
  expect(JSON.parse((await dialog.locator("pre").textContent()) ?? "")).toEqual({ id: task.id });
  await dialog.getByRole("button", { name: "Do not run it" }).click();
  await expect(dialog).toHaveCount(0);
  await dev.run();
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await expect(page.locator("#dev-state")).toHaveCount(0);
  await dev.run();
  await dialog.getByRole("textbox").fill("task_delete");
  await yes.click();
  await expect(page.locator("#dev-state")).toContainText("Done");
  expect((await dev.envelope()).data).toMatchObject({ id: task.id });
});

test("follows a call, shows numbers as they came, and stops it when told to", async ({ page }) => {
  const dev = new Dev(page);
  await dev.open("steps");
  await dev.runTo("Done");
  const log = page.getByRole("log");
  for (const text of ["first <b>", "half", "second"]) await expect(log.getByText(text)).toBeVisible();
  await expect(page.getByRole("list", { name: "Artifacts" })).toContainText("report.txt");
  await expect(page.locator(".result__envelope")).toContainText(/"data": 9007199254740993\b/);
  const lives = await startsToWait(dev);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await expect(page.locator("#dev-state")).toContainText("Cancelled");
  await expect(log).toContainText("waiting");
  await eventually("the program ends", async () => !lives());
});

test("leaves what runs only when told to", async ({ page }) => {
  const dev = new Dev(page);
  const lives = await startsToWait(dev);
  await page.locator('.devlist [data-name="steps"]').click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Keep it running" }).click();
  await expect(page.locator("#dev-name")).toHaveText("wait");
  expect(lives()).toBe(true);
  await page.locator('.devlist [data-name="steps"]').click();
  await dialog.getByRole("button", { name: "Stop action: wait" }).click();
  await expect(page.locator("#dev-name")).toHaveText("steps");
  await eventually("the program ends", async () => !lives());
  await dev.runTo("Done");
});

/** Gives whether the program of the action still lives. */
async function startsToWait(dev: Dev): Promise<() => boolean> {
  await dev.open("wait");
  await dev.run();
  await expect(dev.page.getByRole("log")).toContainText("waiting");
  const pid = Number(readFileSync(PID_FILE, "utf8"));
  const lives = () => existsSync(`/proc/${pid}`);
  expect(lives()).toBe(true);
  return lives;
}

test("keeps values between form and JSON, and says what a form cannot show", async ({ page }) => {
  const dev = new Dev(page);
  await dev.open("shapes");
  const input = { text: "two\nlines", count: 4, ratio: 0.5, flag: false, kind: "b", tags: ["x", "y"], place: { x: 1 }, any: { deep: [null] } };
  await dev.as("JSON");
  await dev.json.fill(JSON.stringify(input));
  await dev.as("Form");
  await expect(dev.control("text")).toHaveValue("two\nlines");
  await expect(dev.control("kind").locator("option:checked")).toHaveText("b");
  await dev.control("count").fill("5");
  await dev.as("JSON");
  expect(JSON.parse(await dev.json.inputValue())).toEqual({ ...input, count: 5 });
  await dev.json.fill(`{"unknown": 1}`);
  await dev.as("Form");
  await expect(page.locator(".issue")).toContainText("cannot show all of this");
  await dev.json.fill("{");
  await dev.run();
  await expect(page.locator(".issue")).toContainText("not valid JSON");
  await dev.json.fill(JSON.stringify({ place: { x: "here" } }));
  await dev.as("Form");
  await dev.runTo("VALIDATION_ERROR");
  await expect(dev.field("x").locator(".issue")).toBeVisible();
});

test("makes a form of an odd schema and never changes a number", async ({ page }) => {
  const dev = new Dev(page);
  let calls = 0;
  page.on("request", (request) => (calls += /\/dev\/api\/.*\/invoke$/.test(request.url()) ? 1 : 0));
  await dev.open("odd");
  await expect(page.locator("#dev-description")).toHaveText("Has an odd schema.⟨U+E0041⟩⟨U+200B⟩");
  for (const [text, kind, sent] of [["42", "text", "42"], ["{a", "text", "{a"], [`"{}"`, "JSON", "{}"], [`{"a": 1}`, "JSON", { a: 1 }]] as const) {
    await dev.control("said").fill(text);
    await expect(dev.field("said").locator(".kind")).toHaveText(`Sent as ${kind}.`);
    await dev.as("JSON");
    expect(JSON.parse(await dev.json.inputValue())).toEqual({ said: sent });
    await dev.as("Form");
    expect((await dev.control("said").inputValue()).replace(/\s+/g, "")).toBe(text.replace(" ", ""));
  }
  await dev.control("said").fill("");
  const refuses = async (control: Locator, text: string, literal: string) => {
    await control.fill(text);
    await dev.run();
    await expect(page.locator(".issue")).toHaveCount(1);
    await expect(page.locator(".issue")).toContainText(`cannot hold the number ${literal} exactly`);
    await expect(control).toHaveValue(text);
    await control.fill("");
  };
  await refuses(dev.control("big"), "9007199254740993", "9007199254740993");
  await refuses(dev.control("ratio"), "1e400", "1e400");
  await refuses(dev.control("either"), `{"\\"1e999": [-0.12345678901234567890]}`, "-0.12345678901234567890");
  await refuses(dev.control("said"), `{"n": 1e-400}`, "1e-400");
  expect(calls, "nothing was sent").toBe(0);
  await dev.control("said").fill("Fix the bug");
  await dev.control("either").fill("[1.50, 1e3]");
  await page.getByRole("button", { name: "Add to rows" }).click();
  await dev.runTo("Done");
  expect((await dev.envelope()).data).toEqual({ either: [1.5, 1000], said: "Fix the bug", rows: [{}] });
  await dev.as("JSON");
  await refuses(dev.json, `{"big": 9007199254740993}`, "9007199254740993");
  await dev.json.fill(`{"big": 9007199254740991, "ratio": 1.50E+1, "toString": "1e999"}`);
  await dev.runTo("Done");
  expect((await dev.envelope()).data).toEqual({ big: Number.MAX_SAFE_INTEGER, ratio: 15, toString: "1e999" });
});

test("remembers what was typed and what was called in this tab", async ({ page }) => {
  const dev = new Dev(page);
  await dev.open("shapes");
  await dev.control("text").fill("once");
  await dev.runTo("Done");
  await dev.control("text").fill("half typed");
  await dev.control("count").fill("9007199254740993");
  await page.reload();
  await expect(dev.control("text")).toHaveValue("half typed");
  await expect(dev.control("count")).toHaveValue("9007199254740993");
  await page.getByText("Calls in this tab (1)").click();
  await page.getByTitle("Fill in this input again").click();
  await expect(dev.control("text")).toHaveValue("once");
  await expect(dev.control("count")).toHaveValue("");
});

test("is accessible and fits a phone", async ({ page }) => {
  const dev = new Dev(page);
  await dev.open("odd");
  await dev.control("big").fill("1e400");
  await dev.run();
  await expect(page.locator(".issue")).toHaveCount(1);
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 780 });
  await dev.open("task_create");
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(await violations(page)).toEqual([]);
});
