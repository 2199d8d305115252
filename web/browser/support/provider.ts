// A model provider of ours on this machine: `runyard demo provider`.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { binary } from "./hub.ts";
import type { Yard } from "./yard.ts";

/** The only key that it takes. */
export const KEY = "tr0ub4dor-quite-plain-words-7319";

/** A hub whose agents talk to such a provider, and how to end both. */
export interface Providing {
  yard: Yard;
  stop: () => Promise<void>;
}

interface Provider {
  url: string;
  stop: () => Promise<void>;
}

/** Starts one. */
export async function provider(): Promise<Provider> {
  const folder = await mkdtemp(join(tmpdir(), "runyard-provider-"));
  await writeFile(join(folder, "keys"), `${KEY}\n`);
  const child = spawn(binary(), ["demo", "provider", "--listen", "127.0.0.1:0", "--keys", join(folder, "keys"), "--output", "json"], {
    env: { ...process.env, RUNYARD_HOME: folder },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const url = await new Promise<string>((done, failed) => {
    createInterface(child.stdout).on("line", (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+[^\s"]*/.exec(line)?.[0];
      if (found !== undefined) done(found);
    });
    child.once("exit", () => failed(new Error("the provider ended")));
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  };
  return { url, stop };
}
