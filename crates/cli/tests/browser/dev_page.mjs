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

const part = (id) => page.locator(`#${id}`);
const field = (name) => page.locator("#fields .field", { has: page.locator(`label:text-is("${name}")`) }).first();
const state = (text) => part("state").filter({ hasText: text }).waitFor();
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
  await part("run").click();
  await state("VALIDATION_ERROR");
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
  await part("run").click();
  await state("Done");
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
  return { curl, cli: await page.evaluate(() => navigator.clipboard.readText()), title: AWKWARD };
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
  await part("run").click();
  await state("VALIDATION_ERROR");
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
  await part("run").click();
  await state("Done");
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
  await part("run").click();
  await state("Done");
  for (const text of ["first <b>", "half", "second"]) await part("log").locator("li", { hasText: text }).waitFor();
  await part("artifacts").locator("li", { hasText: "report.txt" }).waitFor();
  await shot("steps");
  await choose("wait");
  await part("run").click();
  await part("log").locator("li", { hasText: "waiting" }).waitFor();
  assert.ok(existsSync(PID_FILE));
  const pid = Number(readFileSync(PID_FILE, "utf8"));
  const lives = () => existsSync(`/proc/${pid}`);
  assert.ok(lives());
  await shot("running");
  await part("cancel").click();
  await state("Cancelled");
  const end = Date.now() + 30_000;
  while (lives() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!lives(), "the program was stopped");
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
  await keepsValuesBetweenFormAndJson();
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
