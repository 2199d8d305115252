// What a browser loads at once stays small.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ENTRY_BYTES_MAX, LAZY_BYTES_MAX, tooHeavy, weigh } from "../../../scripts/bundle.mjs";

const BUILT = join(import.meta.dirname, "../../../../crates/ui-assets/dist");

/** A page of two scripts that it loads at once and one that comes later, none of which can be compressed. */
function page(first: number, second: number, later: number): string {
  const dist = mkdtempSync(join(tmpdir(), "bundle-"));
  mkdirSync(join(dist, "assets"));
  for (const [name, bytes] of [["main", first], ["base", second], ["later", later]] as const) writeFileSync(join(dist, `assets/${name}.js`), randomBytes(bytes));
  writeFileSync(join(dist, "index.html"), '<script type="module" crossorigin src="/assets/main.js"></script><link rel="modulepreload" crossorigin href="/assets/base.js">');
  return dist;
}

describe("the weight of the page", () => {
  it.each([
    [60_000, 60_000, 100_000, 0],
    [70_000, 70_000, 100_000, 1],
    [10_000, 10_000, 120_000, 1],
  ])("of %i and %i at once and %i later is a problem %i times", (first, second, later, problems) => {
    const dist = page(first, second, later);
    expect(tooHeavy(weigh(dist))).toHaveLength(problems);
    rmSync(dist, { recursive: true });
  });

  it("of a page without scripts is not taken for light", () => {
    expect(tooHeavy({ entry: [], entryBytes: 0, lazy: [] })).toHaveLength(1);
  });

  it.skipIf(!existsSync(join(BUILT, "index.html")))("that is built is within its limits", () => {
    expect([ENTRY_BYTES_MAX, LAZY_BYTES_MAX]).toEqual([130_000, 110_000]);
    expect(tooHeavy(weigh(BUILT))).toEqual([]);
  });
});
