// The page on which actions are called by hand: a form of every schema, what the call says as it goes, and the call in other words.
// clause: A04
// clause: A20
// clause: A21
// clause: A22
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../support/api.ts";
import { actions, DevPage } from "../support/dev-page.ts";
import { binary } from "../support/hub.ts";
import { expect, test as base } from "../support/test.ts";
import { words } from "../support/words.ts";
import { Yard } from "../support/yard.ts";

const AWKWARD = `It's "$HOME" \`x\` \\ <b id="evil">bold</b>`;
const PID_FILE = join(tmpdir(), `runyard-dev-wait-${process.pid}`);

const test = base.extend<{ dev: DevPage }>({
  yard: [
    async ({}, use) => {
      const yard = await Yard.start({ more: actions(PID_FILE) });
      await use(yard);
      await yard.hub.remove();
    },
    { scope: "worker" },
  ],
  dev: async ({ page }, use) => use(new DevPage(page)),
});

test.beforeEach(({ watch }) => watch.expect(/status of 4\d\d/));

test("a21 issues stand at their fields, and the first one has the focus", async ({ dev, page }) => {
  await page.goto("/dev");
  await expect(dev.filter).toBeVisible();
  await page.keyboard.press("/");
  await expect(dev.filter).toBeFocused();
  await dev.filter.fill("task_create");
  await dev.filter.press("Enter");
  await page.waitForURL(/\/dev\/task_create/);
  await dev.runTo("VALIDATION_ERROR");
  await expect(dev.field("title").locator(".issue")).toHaveText("Required value is missing.");
  await expect(dev.field("title").getByRole("textbox")).toBeFocused();
});

test("a20 an action is called, and its call is the same elsewhere", async ({ yard, dev, page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: yard.hub.url });
  await dev.open("task_create");
  await dev.field("title").getByRole("textbox").fill(AWKWARD);
  await dev.field("priority").getByRole("combobox").selectOption({ index: 3 });
  await page.getByRole("button", { name: words("dev.form.addTo", { name: "tags" }) }).click();
  await page.getByLabel("tags 1", { exact: true }).fill("home");
  await dev.runTo(words("dev.done"));
  expect(await dev.data()).toMatchObject({ title: AWKWARD, priority: "high", tags: ["home"] });
  expect(await dev.envelopeText()).toContain('"surface": "dev"');
  await expect(dev.log).toContainText("task created");
  expect(await page.locator("#evil").count(), "text stays text").toBe(0);
  for (const [name, more] of [["curl", " --silent"], ["CLI", " --output json"]] as const) {
    await page.getByRole("group", { name: words("dev.copyAs") }).getByRole("button", { name, exact: true }).click();
    await expect(page.locator(`[data-copied="${name}"]`)).toBeVisible();
    const line = await page.evaluate(() => navigator.clipboard.readText());
    // What was copied really is that call, whatever a shell makes of its characters.
    const env = { ...process.env, PATH: `${dirname(binary())}:${process.env["PATH"]}`, RUNYARD_HOME: yard.hub.home, RUNYARD_TOKEN: await yard.hub.token() };
    const { stdout } = await promisify(execFile)("sh", ["-c", line + more], { env });
    expect(JSON.parse(stdout).data.title, line).toBe(AWKWARD);
  }
  await page.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true });
    document.execCommand = () => false;
  });
  await page.getByRole("group", { name: words("dev.copyAs") }).getByRole("button", { name: "curl", exact: true }).click();
  await expect(page.getByRole("dialog").getByRole("textbox"), "where there is no clipboard it is there to be copied by hand").toHaveValue(/^curl /);
});

test("a21 what destroys something asks first, and says what it does", async ({ yard, dev, page }) => {
  const { id } = await yard.api.post<{ id: string }>("/actions/task_create/invoke", { input: { title: "Mend the pier" } });
  const there = async (): Promise<boolean> => {
    const { tasks } = await yard.api.post<{ tasks: { id: string }[] }>("/actions/task_list/invoke", { input: {} });
    return tasks.some((task) => task.id === id);
  };
  await dev.open("task_delete");
  await dev.field("id").getByRole("textbox").fill(id);
  const before = dev.calls;
  await dev.run.click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(id);
  const effect = dialog.getByRole("button", { name: "Delete task" });
  await expect(effect).toHaveAttribute("aria-disabled", "true");
  await dialog.getByRole("button", { name: words("dev.doNot") }).click();
  await dev.run.click();
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  expect([dev.calls, await there()], "nothing ran").toEqual([before, true]);
  await dev.run.click();
  await dialog.getByRole("textbox").fill("task_delete");
  await effect.click();
  await dev.says(words("dev.done"));
  expect([dev.calls, await there()]).toEqual([before + 1, false]);
});

test("a20 what a call says is shown as it comes, and a number as it is", async ({ dev, page }) => {
  await dev.open("steps");
  await dev.runTo(words("dev.done"));
  for (const text of ["first <b>", "half", "second"]) await expect(dev.log).toContainText(text);
  await expect(page.getByRole("list", { name: words("dev.artifacts") })).toContainText("report.txt");
  expect(await dev.envelopeText()).toMatch(/"data": 9007199254740993\b/);
});

/** Starts the action that waits; gives whether its program still lives. */
async function startsToWait(dev: DevPage): Promise<() => boolean> {
  await dev.open("wait");
  await dev.run.click();
  await expect(dev.log).toContainText("waiting");
  const pid = Number(readFileSync(PID_FILE, "utf8"));
  const lives = (): boolean => existsSync(`/proc/${pid}`);
  expect(lives()).toBe(true);
  return lives;
}

test("a20 stopping a call stops its program", async ({ dev, page }) => {
  const lives = await startsToWait(dev);
  await page.getByRole("button", { name: words("dev.stop"), exact: true }).click();
  await dev.says("Cancelled");
  await eventually("the program is stopped", async () => !lives());
});

test("a20 leaving a call that runs asks first", async ({ dev, page }) => {
  const lives = await startsToWait(dev);
  const steps = page.getByRole("navigation", { name: words("dev.actions") }).locator('[data-name="steps"]');
  await steps.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: words("dev.keepRunning") }).click();
  await expect(page.locator("#dev-name")).toHaveText("wait");
  expect(lives()).toBe(true);
  await steps.click();
  await dialog.getByRole("button", { name: words("dev.effect.stop", { name: "wait" }) }).click();
  await expect(page.locator("#dev-name")).toHaveText("steps");
  await eventually("the program is stopped", async () => !lives());
  await dev.runTo(words("dev.done"));
});

test("a21 form and JSON are the same input", async ({ dev }) => {
  await dev.open("shapes");
  const input = { text: "two\nlines", count: 4, ratio: 0.5, flag: false, kind: "b", tags: ["x", "y"], place: { x: 1 }, any: { deep: [null] } };
  await dev.show("JSON");
  await dev.json.fill(JSON.stringify(input));
  await dev.show("Form");
  await expect(dev.field("text").getByRole("textbox")).toHaveValue("two\nlines");
  await expect(dev.field("kind").locator("option:checked")).toHaveText("b");
  await dev.field("count").getByRole("textbox").fill("5");
  await dev.show("JSON");
  expect(JSON.parse(await dev.json.inputValue())).toEqual({ ...input, count: 5 });
  await dev.json.fill(`{"unknown": 1}`);
  await dev.show("Form");
  await expect(dev.issues.first()).toContainText(words("dev.formCannot"));
  await dev.json.fill("{");
  await dev.run.click();
  await expect(dev.issues.first()).toContainText("not valid JSON");
  await dev.json.fill(JSON.stringify({ place: { x: "here" } }));
  await dev.show("Form");
  await dev.runTo("VALIDATION_ERROR");
  await expect(dev.field("x").locator(".issue")).toBeVisible();
});

test("a21 an odd schema has a form, too, and nothing is hidden in its words", async ({ dev, page }) => {
  await dev.open("odd");
  await expect(page.locator("#dev-description")).toContainText("U+E0041");
  await expect(page.locator("#dev-description")).toContainText("U+200B");
  const said = dev.field("said").getByRole("textbox");
  for (const [text, kind, sent] of [["42", "asText", "42"], ["{a", "asText", "{a"], [`"{}"`, "asJson", "{}"], [`{"a": 1}`, "asJson", { a: 1 }]] as const) {
    await said.fill(text);
    await expect(dev.field("said")).toContainText(words(`dev.form.${kind}`));
    await dev.show("JSON");
    expect(JSON.parse(await dev.json.inputValue())).toEqual({ said: sent });
    await dev.show("Form");
    expect((await said.inputValue()).replace(/\s+/g, ""), "and it is shown as it was").toBe(text.replace(" ", ""));
  }
  await said.fill("Fix the bug");
  await dev.field("either").getByRole("textbox").fill("[1.50, 1e3]");
  await page.getByRole("button", { name: words("dev.form.addTo", { name: "rows" }) }).click();
  await dev.runTo(words("dev.done"));
  expect(await dev.data()).toEqual({ either: [1.5, 1000], said: "Fix the bug", rows: [{}] });
});

test("a21 no number is changed on its way: one that cannot be held is not sent", async ({ dev }) => {
  await dev.open("odd");
  const refuses = async (control: ReturnType<DevPage["field"]>, text: string, literal: string): Promise<void> => {
    await control.fill(text);
    await dev.run.click();
    await expect(dev.issues).toHaveText([new RegExp(words("dev.form.inexact", { literal }).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))]);
    await control.fill("");
  };
  await refuses(dev.field("big").getByRole("textbox"), "9007199254740993", "9007199254740993");
  await refuses(dev.field("ratio").getByRole("textbox"), "1e400", "1e400");
  await refuses(dev.field("either").getByRole("textbox"), `{"\\"1e999": [-0.12345678901234567890]}`, "-0.12345678901234567890");
  await refuses(dev.field("said").getByRole("textbox"), `{"n": 1e-400}`, "1e-400");
  await dev.show("JSON");
  await refuses(dev.json, `{"big": 9007199254740993}`, "9007199254740993");
  expect(dev.calls, "nothing was sent").toBe(0);
  await dev.json.fill(`{"big": 9007199254740991, "ratio": 1.50E+1, "toString": "1e999"}`);
  await dev.runTo(words("dev.done"));
  expect(await dev.data()).toEqual({ big: Number.MAX_SAFE_INTEGER, ratio: 15, toString: "1e999" });
});
