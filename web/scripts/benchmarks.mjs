// How fast the console is: from navigation to a painted timeline of 5,000 events, and frame times at 500 events a second.
// node scripts/benchmarks.mjs [TIMES]; RUNYARD_BIN names the program (take a release build), CHROMIUM the browser. Prints a table.
import { loadavg } from "node:os";
import { chromium } from "@playwright/test";
import { Proxy } from "../browser/support/proxy.ts";
import { contextOf, logIn } from "../browser/support/session.ts";
import { Yard } from "../browser/support/yard.ts";

const TIMES = Number(process.argv[2] ?? 5);
const EVENTS_A_SECOND = 500;
const SECONDS = 8;

const yard = await Yard.start({ inMemory: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const session = await logIn(await yard.link());
  const run = await yard.startLong("five-thousand");
  await yard.api.until(run, "completed");
  const count = (await yard.api.events(run)).length;
  const painted = [];
  for (let time = 0; time < TIMES; time += 1) painted.push(await navigation(session, run, count));
  const frames = [];
  for (let time = 0; time < TIMES; time += 1) frames.push(...(await live(session, run)));
  frames.sort((a, b) => a - b);
  painted.sort((a, b) => a - b);
  const at = (part) => `${frames[Math.min(frames.length - 1, Math.floor(frames.length * part))].toFixed(1)} ms`;
  print([
    ["what", "result"],
    [`navigation to a painted timeline of ${count} events, median of ${TIMES}`, `${painted[Math.floor(TIMES / 2)].toFixed(0)} ms`],
    ["the slowest of them", `${painted.at(-1).toFixed(0)} ms`],
    [`frame at ${EVENTS_A_SECOND} events a second, median of ${frames.length}`, at(0.5)],
    ["95th percentile", at(0.95)],
    ["99th percentile", at(0.99)],
    ["slowest", at(1)],
    ["load of the machine", loadavg().map((load) => load.toFixed(1)).join(" ")],
  ]);
} finally {
  await browser.close();
  await yard.hub.remove();
}

/** Milliseconds from the navigation until the last of the events is painted. */
async function navigation(session, run, count) {
  const context = await contextOf(browser, session, { viewport: { width: 1440, height: 900 }, locale: "en-GB", baseURL: yard.hub.url });
  const page = await context.newPage();
  await page.addInitScript((last) => {
    const look = () => {
      if (document.querySelector(`.facts a[href$="seq=${last}"]`) && document.querySelector('[role="feed"] [data-seq]')) {
        requestAnimationFrame(() => setTimeout(() => (window.__painted = performance.now())));
      } else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, count);
  await page.goto(`/runs/${run}`);
  await page.waitForFunction(() => window.__painted !== undefined);
  const ms = await page.evaluate(() => window.__painted);
  await context.close();
  return ms;
}

/** The times between frames while a run's events come at that speed. */
async function live(session, run) {
  const proxy = await Proxy.start(() => yard.hub.port);
  proxy.pace(run, EVENTS_A_SECOND);
  // The run has ended: without this the page would read what is stored, and not follow what happens.
  proxy.claim(run, 1);
  const context = await contextOf(browser, session, { viewport: { width: 1440, height: 900 }, locale: "en-GB", baseURL: proxy.url });
  const page = await context.newPage();
  await page.goto(`/runs/${run}`);
  await page.locator('[role="feed"] [data-seq]').first().waitFor();
  const frames = await page.evaluate(
    (seconds) =>
      new Promise((done) => {
        const found = [];
        let before = performance.now();
        const end = before + seconds * 1000;
        const frame = (now) => {
          found.push(now - before);
          before = now;
          if (now < end) requestAnimationFrame(frame);
          else done(found);
        };
        requestAnimationFrame(frame);
      }),
    SECONDS,
  );
  await context.close();
  await proxy.stop();
  return frames;
}

function print([head, ...rows]) {
  process.stdout.write(`| ${head.join(" | ")} |\n|${head.map(() => "---").join("|")}|\n`);
  for (const row of rows) process.stdout.write(`| ${row.join(" | ")} |\n`);
}
