// Drives the dev page of a hub in a real browser. What it needs comes in the environment:
// LINK, the one-time link; MODULES, the folder with node_modules; CHROMIUM, the browser; PID_FILE, where the action "wait" leaves
// its process id; SHOTS, where pictures go, if any are wanted. It prints the copied command lines as JSON, or fails.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const { LINK, MODULES, CHROMIUM, PID_FILE, SHOTS } = process.env;
const { chromium } = createRequire(`${MODULES}/package.json`)("playwright-core");
const origin = new URL(LINK).origin;
const AWKWARD = `It's "$HOME" \`x\` \\ <b id="evil">bold</b>`;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme: "light" });
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
const page = await context.newPage();
const complaints = [];
page.on("pageerror", (error) => complaints.push(`page: ${error}`));
page.on("console", (message) => message.type() === "error" && complaints.push(`console: ${message.text()}`));

let calls = 0;
page.on("request", (request) => (calls += request.url().endsWith("/invoke") ? 1 : 0));
const part = (id) => page.locator(`#${id}`);
const field = (name) => page.locator("#fields .field", { has: page.locator(`label:text-is("${name}")`) }).first();
const state = (text) => part("state").filter({ hasText: text }).waitFor();
const runTo = (text) => part("run").click().then(() => state(text));
const envelope = async () => JSON.parse(await part("envelope").textContent());
const shot = async (name) => SHOTS && (await page.screenshot({ path: `${SHOTS}/${name}.png` }));
const choose = async (name) => {
  await part("filter").fill(name);
  await part("filter").press("Enter");
  await part("name").filter({ hasText: name }).waitFor();
};

async function logsIn() {
  await page.goto(LINK);
  await page.waitForURL(`${origin}/dev`);
  await part("list").locator("button", { hasText: "task_create" }).waitFor();
  assert.equal(await part("who").textContent(), "owner");
  const [cookie] = await context.cookies(origin);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
  assert.ok(!(await page.evaluate(() => document.cookie)).includes("runyard"), "no script reads it");
}

async function showsIssuesAtTheirFields() {
  await page.keyboard.press("/");
  assert.ok(await part("filter").evaluate((input) => input === document.activeElement), "a slash goes to the filter");
  await choose("task_create");
  await runTo("VALIDATION_ERROR");
  const issue = field("title").locator(".issue");
  assert.equal(await issue.textContent(), "Required value is missing.");
  assert.ok(await field("title").locator("input").evaluate((input) => input === document.activeElement), "it has the focus");
  await shot("issue");
}

async function runsAnActionAndShowsWhatItSays() {
  await field("title").locator("input").fill(AWKWARD);
  await field("priority").locator("select").selectOption({ index: 3 });
  await page.getByRole("button", { name: "Add to tags" }).click();
  await page.getByLabel("tags 1", { exact: true }).fill("home");
  await runTo("Done");
  const { data, meta } = await envelope();
  assert.deepEqual([data.title, data.priority, data.tags, meta.surface], [AWKWARD, "high", ["home"], "dev"]);
  assert.equal(await page.locator(".issue").count(), 0, "the old issue is gone");
  await part("log").locator("li", { hasText: "task created" }).waitFor();
  assert.equal(await page.locator("#evil").count(), 0, "text stays text");
  await shot("light");
  return data.id;
}

async function copies() {
  await part("curl").click();
  await part("notice").filter({ hasText: "Copied." }).waitFor();
  const curl = await page.evaluate(() => navigator.clipboard.readText());
  await part("cli").click();
  await page.waitForFunction((before) => navigator.clipboard.readText().then((text) => text !== before), curl);
  const cli = await page.evaluate(() => navigator.clipboard.readText());
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
  await part("curl").click();
  assert.equal(await part("copy-text").inputValue(), curl, "where there is no clipboard it is there to be copied by hand");
  await part("copy-done").click();
  return { curl, cli, title: AWKWARD };
}

async function makesAFormOfAnOddSchema() {
  await choose("task_create");
  await choose("odd");
  assert.equal(await part("description").textContent(), "Has an odd schema.\\udb40\\udc41\\u200b", "nothing is hidden in it");
  const said = field("said").locator("textarea");
  for (const [text, kind, sent] of [["42", "text", "42"], ["{a", "text", "{a"], [`"{}"`, "JSON", "{}"], [`{"a": 1}`, "JSON", { a: 1 }]]) {
    await said.fill(text);
    await field("said").locator(".kind", { hasText: `Sent as ${kind}.` }).waitFor();
    await part("as-json").click();
    assert.deepEqual(JSON.parse(await part("json").inputValue()), { said: sent });
    await part("as-form").click();
    assert.equal((await said.inputValue()).replace(/\s+/g, ""), text.replace(" ", ""), "and it is shown as it was");
  }
  await said.fill("Fix the bug");
  await field("either").locator("textarea").fill("[1.50, 1e3]");
  await page.getByRole("button", { name: "Add to rows" }).click();
  await shot("odd");
  await runTo("Done");
  assert.deepEqual((await envelope()).data, { either: [1.5, 1000], said: "Fix the bug", rows: [{}] });
}

async function neverChangesANumber() {
  await choose("odd");
  const before = calls;
  const refuses = async (control, text, literal) => {
    await control.fill(text);
    await part("run").click();
    await page.locator("#call .issue", { hasText: `cannot hold the number ${literal} exactly` }).waitFor();
    assert.equal(await page.locator("#call .issue").count(), 1);
    await control.fill("");
  };
  await refuses(field("big").locator("input"), "9007199254740993", "9007199254740993");
  await refuses(field("ratio").locator("input"), "1e400", "1e400");
  await refuses(field("either").locator("textarea"), `{"\\"1e999": [-0.12345678901234567890]}`, "-0.12345678901234567890");
  await refuses(field("said").locator("textarea"), `{"n": 1e-400}`, "1e-400");
  await part("as-json").click();
  await refuses(part("json"), `{"big": 9007199254740993}`, "9007199254740993");
  assert.equal(calls, before, "nothing was sent");
  await part("json").fill(`{"big": 9007199254740991, "ratio": 1.50E+1, "toString": "1e999"}`);
  await runTo("Done");
  assert.deepEqual((await envelope()).data, { big: Number.MAX_SAFE_INTEGER, ratio: 15, toString: "1e999" });
}

async function keepsValuesBetweenFormAndJson() {
  await choose("shapes");
  const input = { text: "two\nlines", count: 4, ratio: 0.5, flag: false, kind: "b", tags: ["x", "y"], place: { x: 1 }, any: { deep: [null] } };
  await part("as-json").click();
  await part("json").fill(JSON.stringify(input));
  await part("as-form").click();
  assert.equal(await field("text").locator("textarea").inputValue(), "two\nlines");
  assert.equal(await field("kind").locator("option:checked").textContent(), "b");
  await shot("form");
  await field("count").locator("input").fill("5");
  await part("as-json").click();
  assert.deepEqual(JSON.parse(await part("json").inputValue()), { ...input, count: 5 });
  await part("json").fill(`{"unknown": 1}`);
  await part("as-form").click();
  await part("issues").filter({ hasText: "cannot show all of this" }).waitFor();
  await part("json").fill("{");
  await part("run").click();
  await page.locator(".issue", { hasText: "not valid JSON" }).waitFor();
  await part("json").fill(JSON.stringify({ place: { x: "here" } }));
  await part("as-form").click();
  await runTo("VALIDATION_ERROR");
  await field("x").locator(".issue").waitFor();
}

async function asksBeforeItDeletes(id) {
  await choose("task_delete");
  await field("id").locator("input").fill(id);
  await part("run").click();
  await part("confirm").waitFor();
  assert.equal(await part("confirm-yes").textContent(), "Delete task", "it says what it does");
  assert.deepEqual(JSON.parse(await part("confirm-input").textContent()), { id });
  await shot("confirm");
  await part("confirm-no").click();
  assert.equal(await part("confirm").isVisible(), false);
  assert.equal(await part("result").isVisible(), false, "nothing ran");
  await part("run").click();
  await page.keyboard.press("Escape");
  assert.equal(await part("result").isVisible(), false, "nothing ran");
  await choose("task_list");
  await runTo("Done");
  assert.deepEqual((await envelope()).data.tasks.map((task) => task.id), [id], "it is still there");
  await choose("task_delete");
  await field("id").locator("input").fill(id);
  await part("run").click();
  await part("confirm-yes").click();
  await state("Done");
  assert.equal((await envelope()).data.id, id);
}

async function followsAndCancels() {
  await choose("steps");
  await runTo("Done");
  for (const text of ["first <b>", "half", "second"]) await part("log").locator("li", { hasText: text }).waitFor();
  await part("artifacts").locator("li", { hasText: "report.txt" }).waitFor();
  assert.match(await part("envelope").textContent(), /"data": 9007199254740993\b/, "a number is shown as it came");
  await shot("steps");
  const lives = await startsToWait();
  await shot("running");
  await part("cancel").click();
  await state("Cancelled");
  await ends(lives);
}

/** Gives whether the program of the action still lives. */
async function startsToWait() {
  await choose("wait");
  await part("run").click();
  await part("log").locator("li", { hasText: "waiting" }).waitFor();
  const pid = Number(readFileSync(PID_FILE, "utf8"));
  const lives = () => existsSync(`/proc/${pid}`);
  assert.ok(lives());
  return lives;
}

async function ends(lives) {
  const end = Date.now() + 30_000;
  while (lives() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!lives(), "the program was stopped");
}

async function stopsWhatRunsOnlyWhenToldTo() {
  const lives = await startsToWait();
  await part("filter").fill("");
  const inList = (name) => part("list").locator(`button[data-name="${name}"]`);
  await inList("wait").click();
  assert.equal(await part("log").locator("li", { hasText: "waiting" }).isVisible(), true, "what runs is still shown");
  await inList("steps").click();
  await part("leave").waitFor();
  await shot("leave");
  await part("leave-no").click();
  assert.deepEqual([await part("name").textContent(), await part("cancel").isEnabled(), lives()], ["wait", true, true]);
  await inList("steps").click();
  await part("leave-yes").click();
  await part("name").filter({ hasText: "steps" }).waitFor();
  await ends(lives);
  await runTo("Done");
}

// Another server of this machine is sent our cookie by the browser, and can do nothing with it.
async function aNeighbourCannotUseTheCookie() {
  let stolen = "";
  const neighbour = createServer((request, response) => {
    stolen ||= request.headers.cookie ?? "";
    response.setHeader("content-type", "text/html").end("<!doctype html><title>neighbour</title>");
  });
  await new Promise((resolve) => neighbour.listen(0, "127.0.0.1", resolve));
  const tab = await context.newPage();
  await tab.goto(`http://127.0.0.1:${neighbour.address().port}/`);
  assert.match(stolen, /runyard_session_\d+=[0-9a-f]{64}/, "the browser hands it out: ports are nothing to cookies");
  const target = `${origin}/dev/api/actions/task_list/invoke`;
  const fromPage = await tab.evaluate(async (target) => {
    const options = { method: "POST", credentials: "include", mode: "no-cors", body: `{"input":{}}` };
    return fetch(target, options).then((answer) => answer.status, () => "refused");
  }, target);
  assert.ok(fromPage === 0 || fromPage === "refused", `${fromPage}`);
  const headers = { cookie: stolen, origin, "sec-fetch-site": "same-origin", "content-type": "application/json" };
  for (const key of ["", "0".repeat(64)]) {
    const forged = await fetch(target, { method: "POST", headers: { ...headers, "x-runyard-page": key }, body: `{"input":{}}` });
    assert.equal(forged.status, 401);
  }
  await tab.close();
  neighbour.closeAllConnections();
  neighbour.close();
}

async function looksRightEverywhere() {
  await choose("task_create");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot("dark");
  await page.setViewportSize({ width: 390, height: 844 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `it is ${overflow} pixels too wide for a phone`);
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/narrow.png`, fullPage: true });
  await page.emulateMedia({ colorScheme: "light" });
}

async function logsOut() {
  await part("logout").click();
  await page.waitForURL(`${origin}/login`);
  await page.goto(`${origin}/dev`);
  assert.equal(page.url(), `${origin}/login`, "the page is for who is logged in");
  await shot("login");
  assert.deepEqual(complaints, [], "the browser has nothing to complain of");
  await page.goto(LINK);
  await part("status").filter({ hasText: "used already" }).waitFor();
  assert.equal(page.url(), `${origin}/login`, "the code does not stay in the address");
}

try {
  await logsIn();
  await showsIssuesAtTheirFields();
  const id = await runsAnActionAndShowsWhatItSays();
  const copied = await copies();
  await asksBeforeItDeletes(id);
  await followsAndCancels();
  await stopsWhatRunsOnlyWhenToldTo();
  await keepsValuesBetweenFormAndJson();
  await makesAFormOfAnOddSchema();
  await neverChangesANumber();
  await aNeighbourCannotUseTheCookie();
  await looksRightEverywhere();
  await logsOut();
  process.stdout.write(JSON.stringify(copied));
} catch (error) {
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/failed.png` });
  process.stderr.write(`${error.stack}\n${complaints.join("\n")}\n`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
