// Makes the pictures of docs/screens from real runs: every screen in light and dark, the run's page also in Chinese and on a phone, with
// very long content, and the list of runs before there is one.
// node scripts/screens.mjs [NAME…]; RUNYARD_BIN names the program, CHROMIUM the browser.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "@playwright/test";
import { AGENTS, everything } from "../browser/support/everything.ts";
import { Hub } from "../browser/support/hub.ts";
import { contextOf, logIn } from "../browser/support/session.ts";
import { Yard } from "../browser/support/yard.ts";

const OUT = join(import.meta.dirname, "../../docs/screens");
const SCRIPTS = join(import.meta.dirname, "../browser/scripts");
const WIDE = { width: 1440, height: 900 };
const THEMES = ["light", "dark"];
const PHONE = { width: 390, height: 844 };
/** The cases of the repository take their time, so that the pictures have some in them. */
const PAUSE = { "tests/pause": "0.6\n" };
/** Agents with names that people would give them. */
const NAMES = { story: "mender", shell: "pricer", edits: "scribe", question: "clerk", fails: "translator", waits: "lookout" };
const REFUSED = '[[turn]]\nstep = [{ say = "I begin with the berths." }, { fail = "provider-rate-limited", message = "429: the tokens of this hour are used up." }]\n';

/** More of everything than fits. */
const LONG_TASK =
  "Compare the tide tables of all harbors between the northern and the southern lighthouse with those of the last thirty years, name every berth in which a ship of more than thirty metres would touch ground at the lowest water of the year, and say for each of them what would have to be dredged";
const LONG_PATH = "tables/of/the/harbors/between/the/northern/and/the/southern/lighthouse/lowest-water-of-the-year-by-berth-and-hour.csv";
const LONG_SAID = `The tables are kept in \`${LONG_PATH}\`, one line for each hour:

\`\`\`
2026-01-01T00:00:00Z,northern-lighthouse,berth=A1,depth=4.20,lowest=3.15,draught-of-the-longest-ship=5.80,touches-ground=yes,dredge=2.65
\`\`\`

| berth | lowest water of the year | ship that would touch ground | what would have to be dredged | since when it is known | who measured it |
|---|---|---|---|---|---|
| A1 at the northern lighthouse | 3.15 m | Aurora of the Northern Shipping Company | 2.65 m over a length of 140 m | 1 January 1996 | the pilot |

https://tides.example/tables/${"northern-and-southern-lighthouse/".repeat(4)}lowest-water`;
const LONG_COMMAND = `awk 'END { for (i = 1; i <= 400; i++) printf "berth %03d of the harbors between the northern and the southern lighthouse: lowest water 3.15 m, draught 5.80 m, touches ground, dredge 2.65 m over 140 m\\n", i }' data/tides.csv`;
const LONG_SCRIPT = `[[turn]]\nstep = [{ say = ${JSON.stringify(LONG_SAID)} }, { shell = ${JSON.stringify(LONG_COMMAND)} }, { write = "${LONG_PATH}", content = "berth,depth\\n" }, { shell = ${JSON.stringify(LONG_COMMAND)} }]\n`;

/** Every screen: its name, its address, and what is done before the picture is taken. */
const SCREENS = [
  ["runs", () => "/runs"],
  ["new-run", () => "/runs/new?agent=scribe&workspace=marina", async (page) => page.getByRole("textbox").first().fill("Count begun metres whole, and say so in the docs")],
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
  await page.locator('[data-kind="tool"]').filter({ hasText: /sh tests\/run\.sh|awk/ }).first().click();
}

const wanted = process.argv.slice(2);
const chosen = (name) => wanted.length === 0 || wanted.includes(name);
await mkdir(OUT, { recursive: true });
const yard = await Yard.start({ files: PAUSE });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  await staff(yard.hub);
  const all = await filled(yard);
  const session = await logIn(await yard.link());
  for (const theme of THEMES) {
    for (const [name, address, before] of SCREENS) if (chosen(name)) await picture({ name: `${name}.${theme}`, address: address(all), before, theme });
    if (chosen("run.zh")) await picture({ name: `run.zh.${theme}`, address: `/runs/${all.approving}`, before: chooseTool, theme, language: "zh" });
    if (chosen("run.phone")) await picture({ name: `run.phone.${theme}`, address: `/runs/${all.approving}`, theme, viewport: PHONE });
    if (chosen("approvals.phone")) await picture({ name: `approvals.phone.${theme}`, address: `/approvals/${all.approval}`, theme, viewport: PHONE });
    if (chosen("login")) await picture({ name: `login.${theme}`, address: "/login", theme });
  }
  // Last, so that it is in none of the other pictures.
  if (chosen("run-long") || chosen("run-long.phone")) {
    const address = `/runs/${await lengthy(yard)}`;
    for (const theme of THEMES) {
      if (chosen("run-long")) await picture({ name: `run-long.${theme}`, address, before: chooseTool, theme });
      if (chosen("run-long.phone")) await picture({ name: `run-long.phone.${theme}`, address, theme, viewport: PHONE });
    }
  }
  if (chosen("runs-empty")) {
    const hub = await Hub.start(async () => "");
    try {
      const owner = await logIn(await hub.command("open", "--print"));
      for (const theme of THEMES) await picture({ name: `runs-empty.${theme}`, address: "/runs", theme, of: { hub, session: owner } });
    } finally {
      await hub.remove();
    }
  }

  async function picture({ name, address, before, theme, language = "en", viewport = WIDE, of = { hub: yard.hub, session } }) {
    const options = { viewport, colorScheme: theme, locale: language === "zh" ? "zh-CN" : "en-GB", baseURL: of.hub.url, reducedMotion: "reduce" };
    const context = await contextOf(browser, of.session, options);
    await context.addCookies([{ name: "runyard_language", value: language, domain: "127.0.0.1", path: "/" }]);
    const page = await context.newPage();
    await page.goto(address);
    await page.locator("main").waitFor();
    await settle(page);
    if (before) {
      await before(page);
      await settle(page);
    }
    // What takes an effect is inert until it has stood still for a second, and looks it.
    await page.waitForTimeout(2500);
    await page.screenshot({ path: join(OUT, `${name}.png`) });
    await context.close();
    process.stdout.write(`${name}.png\n`);
  }
} finally {
  await browser.close();
  await yard.hub.remove();
}

/** The tests have an agent for each of their scripts; here only those work that the pictures need. */
async function staff(hub) {
  const refused = join(hub.folder, "refused.toml");
  const agents = Object.entries(NAMES).map(([kind, name]) => agent(name, kind === "fails" ? refused : join(SCRIPTS, `${AGENTS[kind]}.toml`)));
  const keeper = agent("keeper", join(SCRIPTS, "one-at-a-time.toml"), "runs_max = 1");
  const surveyor = agent("surveyor", join(hub.folder, "long.toml"));
  await hub.kill();
  await writeFile(refused, REFUSED);
  await writeFile(join(hub.folder, "long.toml"), LONG_SCRIPT);
  await writeFile(join(hub.home, "runyard.toml"), [...agents, keeper, surveyor].join("\n"));
  await hub.up();
}

function agent(name, script, more = "") {
  return `[backend.${name}]\nkind = "scripted"\nsettings.scriptFile = ${JSON.stringify(script)}\n[agent.${name}]\nbackend = "${name}"\n${more}\n`;
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

/** A run with more of everything than fits, which waits for a decision. */
async function lengthy(yard) {
  const id = await yard.start("surveyor", LONG_TASK);
  const first = await yard.api.asked(id);
  await yard.api.approve(first);
  await yard.api.asked(id, first.id);
  return id;
}

/** Until fonts are there and nothing is on its way. */
async function settle(page) {
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(700);
}
