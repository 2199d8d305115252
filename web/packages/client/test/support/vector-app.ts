// Starts the application that the table of calls is about, and logs in as a browser would.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Marker, Session } from "../vectors.js";

/** A server of the application, and a session on it. */
export interface VectorApp extends Session {
  /** A file that is not there yet. */
  marker: () => Marker;
  stop: () => Promise<void>;
}

/** Starts the program; it serves until it is stopped. */
export async function startVectorApp(program: string): Promise<VectorApp> {
  const home = mkdtempSync(join(tmpdir(), "vector-app-"));
  const child = spawn(
    program, ["serve", "--listen", "127.0.0.1:0"], { env: { HOME: home }, stdio: ["ignore", "pipe", "ignore"] },
  );
  const [line] = await once(child.stdout, "data");
  const baseUrl = String(line).split("\n")[0]?.replace("listening on ", "") ?? "";
  const token = readFileSync(join(home, ".vector-app/token"), "utf8").trim();
  const post = (path: string, headers: Record<string, string>, body: unknown) =>
    fetch(
      `${baseUrl}${path}`, {
        method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body),
      },
    );
  const link = await (await post("/api/v1/logins", { authorization: `Bearer ${token}` }, {})).json();
  const login = await post("/login", { origin: baseUrl }, { code: String(link.data.url).split("#")[1] });
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  const { data } = await login.json();
  let markers = 0;
  const marker = () => {
    const path = join(home, `marker-${(markers += 1)}`);
    const made = async () => {
      while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    return { path, made };
  };
  const stop = async () => {
    const gone = once(child, "exit");
    child.kill();
    await gone;
    rmSync(home, { recursive: true, force: true });
  };
  return { baseUrl, pageKey: data.pageKey, cookie, marker, stop };
}
