// Checks how much a browser loads: what the page needs at once, and each part that comes later, compressed.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

/** What index.html loads at once may weigh so much, in bytes after gzip. */
export const ENTRY_BYTES_MAX = 130_000;
/** Each further chunk may weigh so much. */
export const LAZY_BYTES_MAX = 110_000;

const SCRIPTS = /<(?:script[^>]+src|link[^>]+rel="modulepreload"[^>]+href)="(\/assets\/[^"]+\.js)"/g;

/** What is loaded at once and what later, with the weight of each. */
export function weigh(dist) {
  const page = readFileSync(join(dist, "index.html"), "utf8");
  const first = new Set([...page.matchAll(SCRIPTS)].map(([, path]) => path.slice("/assets/".length)));
  const chunks = readdirSync(join(dist, "assets")).filter((name) => name.endsWith(".js"));
  const weights = chunks.map((name) => ({ name, bytes: gzipSync(readFileSync(join(dist, "assets", name)), { level: 9 }).length }));
  const entry = weights.filter(({ name }) => first.has(name));
  return {
    entry,
    entryBytes: entry.reduce((sum, { bytes }) => sum + bytes, 0),
    lazy: weights.filter(({ name }) => !first.has(name)).sort((a, b) => b.bytes - a.bytes),
  };
}

/** What is too heavy, in words; nothing where all is well. */
export function tooHeavy({ entry, entryBytes, lazy }) {
  const problems = [];
  if (entry.length === 0) problems.push("index.html loads no script: nothing was weighed");
  if (entryBytes > ENTRY_BYTES_MAX) problems.push(`the entry weighs ${entryBytes} bytes after gzip, at most ${ENTRY_BYTES_MAX}`);
  for (const { name, bytes } of lazy.filter(({ bytes }) => bytes > LAZY_BYTES_MAX)) {
    problems.push(`${name} weighs ${bytes} bytes after gzip, at most ${LAZY_BYTES_MAX}`);
  }
  return problems;
}

if (process.argv[1] === import.meta.filename) {
  const weight = weigh(resolve(process.argv[2] ?? join(import.meta.dirname, "../../crates/ui-assets/dist")));
  console.log(`entry ${weight.entryBytes} bytes after gzip: ${weight.entry.map(({ name }) => name).join(", ")}`);
  for (const { name, bytes } of weight.lazy) console.log(`lazy  ${bytes} ${name}`);
  const problems = tooHeavy(weight);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
