// A hub with agents that are scripts, and a repository for them to work on.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Api, type Run } from "./api.ts";
import { Hub } from "./hub.ts";
import { generated, type LONG, PROFILES, turnsOf } from "./agents.ts";
import { FILES, HUGE_FILE } from "./repository.ts";

const SCRIPTS = join(import.meta.dirname, "../scripts");

/** What the hub is told beside its agents. */
const CONFIGURATION = `
[hub]
runs_max = 500
`;

export interface Options {
  /** More of `runyard.toml`. */
  more?: string;
  /** In memory, for runs of very many events. An agent there starts no process: its sandbox has no such folder. */
  inMemory?: boolean;
  /** More files of each repository. */
  files?: Record<string, string>;
}

const MEMORY = "/dev/shm";

export class Yard {
  readonly hub: Hub;
  readonly api: Api;
  /** The folder that agents work on. */
  readonly workspace: string;
  readonly #files: Record<string, string>;
  #repositories = 0;

  private constructor(hub: Hub, api: Api, workspace: string, files: Record<string, string>) {
    this.#files = files;
    this.hub = hub;
    this.api = api;
    this.workspace = workspace;
  }

  static async start({ more = "", inMemory = false, files = {} }: Options = {}): Promise<Yard> {
    const configure = async (folder: string): Promise<string> => `${CONFIGURATION}${await agents(folder)}${more}`;
    const hub = await Hub.start(configure, inMemory && existsSync(MEMORY) ? MEMORY : undefined);
    const yard = new Yard(hub, new Api(hub, await hub.token()), join(hub.folder, "harbor"), files);
    await yard.repository("harbor");
    return yard;
  }

  /** A link that logs the owner in, once. */
  link(): Promise<string> {
    return this.hub.command("open", "--print");
  }

  /** Starts a run and gives its id. */
  async start(agent: string, task = "Look around", more: Record<string, unknown> = {}): Promise<string> {
    const made = await this.api.post<{ run: Run }>("/runs", { task, agent, workspace: this.workspace, ...more });
    return made.run.id;
  }

  /** Starts a run that will have this many events, and a few more. */
  async startLong(name: keyof typeof LONG): Promise<string> {
    const id = await this.start(name);
    for (let turn = 1; turn < turnsOf(name); turn += 1) await this.api.post(`/runs/${id}/commands`, { kind: "turn", text: "And on." });
    return id;
  }

  /** Another folder on the list, with these files in it. */
  async place(name: string, files: Record<string, string>): Promise<string> {
    const folder = join(this.hub.folder, name);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text, { mode: 0o644 });
    }
    await this.api.post("/workspaces", { path: folder });
    return folder;
  }

  /** A repository of its own, for what must find the files as they were; gives its folder. */
  async repository(name = `harbor-${(this.#repositories += 1)}`): Promise<string> {
    const folder = await this.place(name, { ...FILES, ...HUGE_FILE, ...this.#files });
    const git = (...words: string[]): Promise<unknown> => promisify(execFile)("git", ["-C", folder, ...words]);
    await git("init", "-q", "-b", "main");
    await git("config", "user.name", "Ada");
    await git("config", "user.email", "ada@example.com");
    await git("add", "-A");
    await git("commit", "-q", "-m", "Take bookings for berths");
    return folder;
  }
}

/** Every script of the folder is an agent of its name, and so is every one that is made of a pattern. */
async function agents(folder: string): Promise<string> {
  const parts = [];
  for (const file of await readdir(SCRIPTS)) {
    if (file.endsWith(".toml")) parts.push(agent(file.slice(0, -".toml".length), join(SCRIPTS, file)));
  }
  return [...parts, ...(await generated(folder, agent))].join("\n");
}

function agent(name: string, file: string): string {
  const profile = PROFILES[name] ?? "";
  return `\n[backend.${name}]\nkind = "scripted"\nsettings.scriptFile = ${JSON.stringify(file)}\n[agent.${name}]\nbackend = "${name}"\nruns_max = ${name === "one-at-a-time" ? 1 : 200}\n${profile}\n`;
}
