// The real program as a process: a hub of its own in a folder of its own, which can be killed and started again.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/** Whatever is waited for comes within this time, or the test fails. */
export const PATIENCE_MS = 60_000;

/** The program under test. */
export function binary(): string {
  return resolve(process.env["RUNYARD_BIN"] ?? join(import.meta.dirname, "../../../target/debug/runyard"));
}

/** A hub and all that it writes. */
export class Hub {
  readonly folder: string;
  #child: ChildProcess | null = null;
  #port = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** A hub with the configuration that is made for its folder, once it listens. */
  static async start(configure: (folder: string) => Promise<string>, room = tmpdir()): Promise<Hub> {
    const hub = new Hub(await mkdtemp(join(room, "runyard-browser-")));
    await mkdir(hub.home, { mode: 0o700 });
    await writeFile(join(hub.home, "runyard.toml"), await configure(hub.folder), { mode: 0o600 });
    await hub.up();
    return hub;
  }

  get home(): string {
    return join(this.folder, "home");
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  async token(): Promise<string> {
    return (await readFile(join(this.home, "token"), "utf8")).trim();
  }

  /** Starts it, at the same place as before. */
  async up(): Promise<void> {
    const child = spawn(binary(), ["up", "--listen", `127.0.0.1:${this.#port}`], {
      cwd: this.folder,
      env: this.#environment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    child.stderr.pipe(createWriteStream(join(this.folder, "hub.log"), { flags: "a" }));
    const lines = createInterface(child.stdout);
    const [first] = await Promise.race([once<[string]>(lines, "line"), once<[string]>(child, "exit")]);
    const port = /^listening on http:\/\/127\.0\.0\.1:(\d+)$/.exec(first)?.[1];
    if (port === undefined) throw new Error(`the hub did not start: ${first}\n${await readFile(join(this.folder, "hub.log"), "utf8")}`);
    this.#port = Number(port);
  }

  /** Kills it, as a power cut would. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /** Ends it and takes away what it wrote. */
  async remove(): Promise<void> {
    const child = this.#child;
    if (child !== null && child.exitCode === null) {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await gone;
      clearTimeout(late);
    }
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Runs the program with this home, and gives what it prints. */
  command(...words: string[]): Promise<string> {
    return this.commandIn(this.folder, ...words);
  }

  /** The same, in another folder. */
  async commandIn(folder: string, ...words: string[]): Promise<string> {
    const ran = await promisify(execFile)(binary(), words, { cwd: folder, env: this.#environment() });
    return ran.stdout.trim();
  }

  /** The same, with something on its standard input. */
  async commandWith(input: string, ...words: string[]): Promise<void> {
    const child = spawn(binary(), words, { cwd: this.folder, env: this.#environment(), stdio: ["pipe", "ignore", "inherit"] });
    child.stdin.end(input);
    const [code] = await once<[number]>(child, "exit");
    if (code !== 0) throw new Error(`runyard ${words.join(" ")} ended with ${code}`);
  }

  #environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("RUNYARD_") && name !== "NO_COLOR");
    return { ...Object.fromEntries(kept), RUNYARD_HOME: this.home, RUST_BACKTRACE: "1" };
  }
}

interface Emitter {
  once(event: string, listener: (...values: never[]) => void): unknown;
}

function once<T extends unknown[]>(emitter: Emitter, event: string): Promise<T> {
  return new Promise((done) => emitter.once(event, (...values: never[]) => done(values as unknown[] as T)));
}
