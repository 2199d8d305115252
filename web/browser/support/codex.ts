// A hub whose codex is the real program, and talks to a model provider of ours on this machine.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { binary } from "./hub.ts";
import { Yard } from "./yard.ts";

const KEY = "tr0ub4dor-quite-plain-words-7319";
const NATIVE = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/** The codex that `./test` installs. */
export function codexProgram(): string {
  const program = process.env["RUNYARD_TEST_CODEX"] ?? join(import.meta.dirname, "../../../target/codex-0.166.0", NATIVE);
  if (!existsSync(program)) throw new Error(`there is no ${program}; ./test installs it`);
  return program;
}

interface Provider {
  url: string;
  stop: () => Promise<void>;
}

async function provider(): Promise<Provider> {
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

/** The yard, and how to end it with its provider. */
export async function codexYard(): Promise<{ yard: Yard; stop: () => Promise<void> }> {
  const { url, stop } = await provider();
  const more = `\n[backend.codex]\ncommand = [${JSON.stringify(codexProgram())}]\nbase_url = ${JSON.stringify(url)}\nmodel = "gpt-5.5"\n`;
  const yard = await Yard.start({ more });
  await yard.hub.commandWith(JSON.stringify({ OPENAI_API_KEY: KEY }), "secrets", "set", "codex", "auth.json");
  return {
    yard,
    stop: async () => {
      await yard.hub.remove();
      await stop();
    },
  };
}
