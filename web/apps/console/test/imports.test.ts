// The console is a user of the React package like any other: it takes nothing but what that gives to everybody.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const CONSOLE = join(import.meta.dirname, "..");
const SOURCES = join(CONSOLE, "src");
const PUBLIC = "@runyard/react";
/** Statements at the beginning of a line, and loading on demand; not what the dev page writes for others to copy. */
const IMPORT = /(?:^(?:import|export)\b[^;`"']*?|\bimport\(\s*)["']([^"']+)["']/gm;

function imports(): [file: string, name: string][] {
  const files = readdirSync(SOURCES, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name));
  return files.flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    return [...readFileSync(path, "utf8").matchAll(IMPORT)].map(([, name = ""]): [string, string] => [path, name]);
  });
}

/** Whether an import takes what is not public. */
function reachesIn(file: string, name: string): boolean {
  if (name.startsWith(".")) return relative(CONSOLE, resolve(dirname(file), name)).startsWith("..");
  return name.startsWith("@runyard/") && name !== PUBLIC;
}

describe("the console uses only the public entry of the React package", () => {
  it("finds the imports", () => {
    expect(imports().filter(([, name]) => name === PUBLIC).length).toBeGreaterThan(20);
  });

  it.each([
    [PUBLIC, false],
    ["../ui", false],
    ["react", false],
    ["@runyard/client", true],
    ["@runyard/react/src/provider", true],
    ["../../../../packages/client/src/index", true],
  ])("%s reaches in: %s", (name, reaches) => {
    expect(reachesIn(join(SOURCES, "app/frame.tsx"), name)).toBe(reaches);
  });

  it("nothing reaches into the packages", () => {
    expect(imports().filter(([file, name]) => reachesIn(file, name)).map(([file, name]) => [relative(CONSOLE, file), name])).toEqual([]);
  });
});
