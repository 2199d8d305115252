// Agents that are not a file of their own: one that ends with each code and kind of failure, and long ones.
import { writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { FAILURE_KINDS, RUN_CODES } from "./codes.ts";

/** What a profile says beside its script. */
export const PROFILES: Record<string, string> = {
  mute: "idle_ms = 300",
  patient: 'on_reject = "continue"',
};

/** What an agent may say at its end, with a path that nobody else should see. */
export const BAD_MESSAGE = `The agent ended with status 3 in ${join(homedir(), "private/harbor")}.`;

/** How many events the long ones have at the least, when they are at their end. */
export const LONG = { "five-thousand": 5_000, "fifty-thousand": 50_000 } as const;

/** A message and a status. */
const EVENTS_PER_STEP = 2;
/** A script has 10,000 steps at most, so the longest run has further turns. */
const STEPS_MAX = 9_000;

/** How many turns it takes until a long one has all its events. */
export function turnsOf(name: keyof typeof LONG): number {
  return Math.ceil(LONG[name] / EVENTS_PER_STEP / STEPS_MAX);
}

function long(name: keyof typeof LONG): string {
  const repeat = Math.ceil(LONG[name] / EVENTS_PER_STEP / turnsOf(name));
  return `[[turn]]\nstep = [{ say = "The tables agree.", repeat = ${repeat} }]\n`;
}

function failures(): [string, string][] {
  const ends = (name: string, step: string): [string, string] => [
    name,
    `[[turn]]\nstep = [{ say = "I begin." }, { ${step}, message = ${JSON.stringify(BAD_MESSAGE)} }]\n`,
  ];
  return [
    ...RUN_CODES.map(({ code }) => ends(`ends-${code}`, `block = "${code}"`)),
    ...FAILURE_KINDS.map(({ code }) => ends(`fails-${code}`, `fail = "${code}"`)),
  ];
}

/** Writes the scripts into a folder and gives the configuration of their agents. */
export async function generated(folder: string, agent: (name: string, file: string) => string): Promise<string[]> {
  const names: (keyof typeof LONG)[] = ["five-thousand", "fifty-thousand"];
  const scripts = [...failures(), ...names.map((name): [string, string] => [name, long(name)])];
  const parts = [];
  for (const [name, text] of scripts) {
    const file = join(folder, `script-${name}.toml`);
    await writeFile(file, text);
    parts.push(agent(name, file));
  }
  return parts;
}
