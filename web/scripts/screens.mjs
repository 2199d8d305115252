// Makes the pictures of docs/screens from real runs: every screen in light and dark, the run's page also in Chinese and on a phone.
// node scripts/screens.mjs [NAME…]; RUNYARD_BIN names the program, CHROMIUM the browser.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "@playwright/test";
import { AGENTS, everything } from "../browser/support/everything.ts";
import { contextOf, logIn } from "../browser/support/session.ts";
import { Yard } from "../browser/support/yard.ts";

const OUT = join(import.meta.dirname, "../../docs/screens");
const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
/** The cases of the repository take their time, so that the pictures have some in them. */
const PAUSE = { "tests/pause": "0.6\n" };
const NAMES = { story: "mender", shell: "pricer", edits: "scribe", question: "clerk", fails: "translator", waits: "lookout" };

/** Every screen: its name, its address, and what is done before the picture is taken. */
const SCREENS = [
  ["runs", () => "/runs"],
  ["new-run", () => "/runs/new", async (page) => page.getByRole("textbox").first().fill("Count begun metres whole, and say so in the docs")],
  ["run", (all) => `/runs/${all.approving}`, chooseTool],
  ["run-completed", (all) => `/runs/${all.story}`],
  ["run-failed", (all) => `/runs/${all.failed}`],
  ["question", (all) => `/runs/${all.question}`],
  ["diff", (all) => `/runs/${all.review}/diff`],
  ["artifact", (all) => `/runs/${all.story}/artifacts/${all.artifact}`],
  ["transcript", (all) => `/runs/${all.story}/transcript`],
  ["run-audit", (all) => `/runs/${all.story}/audit`],
  ["approvals", (all) => `/approvals/${all.approval}`],
  ["agents", () => "/agents"],
  ["edges", () => "/edges"],
  ["policy", () => "/policy"],
  ["audit", () => "/audit"],
  ["settings", () => "/settings"],
  ["dev", () => "/dev/task_create"],
  ["keys", () => "/runs", async (page) => page.keyboard.press("?")],
  ["palette", () => "/runs", async (page) => page.keyboard.press("Control+k")],
];

/** Shows the detail of the command that ran. */
async function chooseTool(page) {
  await page.locator('[data-kind="tool"]').filter({ hasText: "sh tests/run.sh" }).first().click();
}

const wanted = process.argv.slice(2);
const chosen = (name) => wanted.length === 0 || wanted.includes(name);
await mkdir(OUT, { recursive: true });
const yard = await Yard.start({ more: named(), files: PAUSE });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const all = await filled(yard);
  const session = await logIn(await yard.link());
  for (const theme of ["light", "dark"]) {
    for (const [name, address, before] of SCREENS) if (chosen(name)) await picture({ name: `${name}.${theme}`, address: address(all), before, theme });
    if (chosen("run.zh")) await picture({ name: `run.zh.${theme}`, address: `/runs/${all.approving}`, before: chooseTool, theme, language: "zh" });
    if (chosen("run.phone")) await picture({ name: `run.phone.${theme}`, address: `/runs/${all.approving}`, theme, viewport: PHONE });
    if (chosen("approvals.phone")) await picture({ name: `approvals.phone.${theme}`, address: `/approvals/${all.approval}`, theme, viewport: PHONE });
    if (chosen("login")) await picture({ name: `login.${theme}`, address: "/login", theme });
  }

  async function picture({ name, address, before, theme, language = "en", viewport = WIDE }) {
    const options = { viewport, colorScheme: theme, locale: language === "zh" ? "zh-CN" : "en-GB", baseURL: yard.hub.url, reducedMotion: "reduce" };
    const context = await contextOf(browser, session, options);
    await context.addCookies([{ name: "runyard_language", value: language, domain: "127.0.0.1", path: "/" }]);
    const page = await context.newPage();
    await page.goto(address);
    await page.locator("main").waitFor();
    await settle(page);
    if (before) {
      await before(page);
      await settle(page);
    }
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await context.close();
    process.stdout.write(`${name}.png\n`);
  }
} finally {
  await browser.close();
  await yard.hub.remove();
}

/** Agents with names that people would give them. */
function named() {
  const agents = Object.entries(NAMES).map(([kind, name]) => `\n[agents.${name}]\nbackend = "${AGENTS[kind]}"\n`);
  return [...agents, '\n[agents.keeper]\nbackend = "one-at-a-time"\nruns_max = 1\n'].join("");
}

/** Runs in every state, one of them in the midst of its work. */
async function filled(yard) {
  const all = await everything(yard, NAMES);
  await yard.api.until(await yard.start("keeper", "Keep the log of the quay"), "running");
  await yard.start("keeper", "Count the lamps on the quay");
  const workspace = await yard.repository("quay");
  const approving = await yard.start(NAMES.story, "Find out why a ship is booked twice, and mend it", { workspace });
  const first = await yard.api.asked(approving);
  await yard.api.approve(first);
  await yard.api.asked(approving, first.id);
  return { ...all, approving };
}

/** Until fonts are there and nothing is on its way. */
async function settle(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(700);
}
