// A hub whose codex is the real program, and talks to a model provider of ours on this machine.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Providing, KEY, provider } from "./provider.ts";
import { Yard } from "./yard.ts";

const NATIVE = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/** The codex that `./test` installs. */
export function codexProgram(): string {
  const program = process.env["RUNYARD_TEST_CODEX"] ?? join(import.meta.dirname, "../../../target/codex-0.166.0", NATIVE);
  if (!existsSync(program)) throw new Error(`there is no ${program}; ./test installs it`);
  return program;
}

/** The yard, and how to end it with its provider. */
export async function codexYard(): Promise<Providing> {
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
