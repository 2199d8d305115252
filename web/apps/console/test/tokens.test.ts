// Every text can be read and every control seen, in every theme. Computed from the tokens themselves.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const css = readFileSync(join(import.meta.dirname, "../src/styles/tokens.css"), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
const THEMES = ["light", "dark", "contrast"] as const;
type Theme = (typeof THEMES)[number];

/** The declarations that hold in a theme, in the order in which they win. */
function tokens(theme: Theme): Map<string, string> {
  const all = new Map<string, string>();
  for (const [, selector = "", body = ""] of css.matchAll(/([^{}]+)\{([^{}]*)\}/g)) {
    const selectors = selector.split(",").map((one) => one.trim());
    if (!selectors.includes(":root") && !selectors.includes(`[data-theme="${theme}"]`)) continue;
    for (const [, name = "", value = ""] of body.matchAll(/(--[\w-]+):\s*([^;]+);/g)) all.set(name, value.trim());
  }
  return all;
}

function colour(all: Map<string, string>, name: string): [number, number, number] {
  let value = all.get(name);
  for (let depth = 0; depth < 5 && value?.startsWith("var("); depth += 1) value = all.get(value.slice(4, -1).trim());
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(value ?? "")?.[1];
  if (!hex) throw new Error(`${name} is no plain colour: ${value}`);
  const full = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  return [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16) / 255) as [number, number, number];
}

function luminance(rgb: [number, number, number]): number {
  const [r, g, b] = rgb.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(all: Map<string, string>, one: string, other: string): number {
  const [a, b] = [luminance(colour(all, one)), luminance(colour(all, other))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const STATES = ["created", "planned", "accepted", "preparing", "running", "needs-approval", "applying", "completed", "failed", "cancelled"];
const SURFACES = ["--bg-canvas", "--bg-surface", "--bg-raised", "--bg-inset", "--bg-hover", "--bg-selected"];

/** Text on what is behind it. */
const TEXT: [string, string][] = [
  ...["--text", "--text-soft", "--text-muted", "--text-link"].flatMap((text) => SURFACES.map((surface): [string, string] => [text, surface])),
  ...STATES.map((state): [string, string] => [`--state-${state}-fg`, `--state-${state}-bg`]),
  ...["failed", "needs-approval", "completed", "running"].flatMap((state) => ["--bg-surface", "--bg-selected", "--bg-inset"].map((surface): [string, string] => [`--state-${state}-fg`, surface])),
  ["--flag-degraded-fg", "--flag-degraded-bg"],
  ["--text", "--flag-degraded-bg"],
  ["--text", "--state-failed-bg"],
  ["--text-soft", "--state-failed-bg"],
  ["--text-muted", "--state-failed-bg"],
  ["--ink-fg", "--ink-bg"],
  ["--effect-fg", "--effect-bg"],
  ["--effect-fg", "--effect-bg-hover"],
  ["--danger-fg", "--danger-bg"],
  ["--danger-fg", "--danger-bg-hover"],
  ["--danger-text", "--bg-raised"],
  ["--danger-text", "--turn-bg"],
  ["--turn-text", "--turn-bg"],
  ["--text", "--turn-bg"],
  ["--text-muted", "--turn-bg"],
  ["--diff-add-fg", "--bg-surface"],
  ["--diff-del-fg", "--bg-surface"],
  ["--text", "--diff-add-bg"],
  ["--text", "--diff-add-word"],
  ["--text", "--diff-del-bg"],
  ["--text", "--diff-del-word"],
  ["--text-muted", "--diff-hunk-bg"],
];

/** What has to be seen to be used: the edge of a control, the ring of focus, the mark of what is selected. */
const CONTROLS: [string, string][] = [
  ...["--bg-surface", "--bg-raised", "--bg-canvas"].flatMap((surface): [string, string][] => [
    ["--line-control", surface],
    ["--focus", surface],
    ["--selected-mark", surface],
  ]),
  ["--focus", "--turn-bg"],
  ["--danger-line", "--turn-bg"],
  ["--effect-line", "--turn-bg"],
];

describe.each(THEMES)("the theme %s", (theme) => {
  const all = tokens(theme);
  const below = (pairs: [string, string][], least: number) => pairs.filter(([one, other]) => contrast(all, one, other) < least);
  it("has text of at least 4.5 to 1", () => {
    expect(below(TEXT, 4.5)).toEqual([]);
  });
  it("has controls and focus of at least 3 to 1", () => {
    expect(below(CONTROLS, 3)).toEqual([]);
  });
});

it("a theme overrides meaning and never the palette", () => {
  for (const theme of ["dark", "contrast"]) {
    const body = new RegExp(`\\[data-theme="${theme}"\\] \\{([^}]*)\\}`).exec(css)?.[1] ?? "";
    expect(body).not.toBe("");
    expect(body).not.toMatch(/--p-[\w-]+:/);
  }
});
