// Events and views for tests.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Row, RunEvent, RunView } from "../../src/index.js";

const FIXTURES = fileURLToPath(new URL("../../../../fixtures", import.meta.url));

/** A log that Rust folds, too, with what it says. */
export interface Fixture {
  name: string;
  events: RunEvent[];
  view: Record<string, unknown>;
}

/** The logs of a folder. */
export function fixtures(folder: string): Fixture[] {
  const directory = `${FIXTURES}/${folder}`;
  const names = readdirSync(directory).filter((name) => name.endsWith(".ndjson"));
  return names.map((file) => {
    const name = file.replace(".ndjson", "");
    const lines = readFileSync(`${directory}/${file}`, "utf8").trim().split("\n");
    const view: Record<string, unknown> = JSON.parse(readFileSync(`${directory}/${name}.view.json`, "utf8"));
    return { name, events: lines.map((line): RunEvent => JSON.parse(line)), view };
  });
}

/** The rows of a view as a list. */
export function rowsOf(view: RunView): Row[] {
  return Array.from({ length: view.rows.length }, (_, index) => view.rows.at(index));
}

/** A view as plain data, to compare whole ones. */
export function plain(view: RunView): unknown {
  const { rows, ...rest } = view;
  const places = rowsOf(view).flatMap((row) => row.events.map((event) => [event.sequence, rows.indexOf(event.sequence)]));
  return JSON.parse(JSON.stringify({ ...rest, rows: rowsOf(view), places }));
}

const BEGUN_MS = Date.parse("2026-11-16T08:00:00.000Z");

/** Makes a log event by event, a second between each two. */
export class Log {
  readonly events: RunEvent[] = [];
  #ms = BEGUN_MS;

  /** Adds an event, after so many seconds. */
  add(type: string, payload: unknown, seconds = 1): this {
    this.#ms += seconds * 1000;
    const sequence = this.events.length + 1;
    const timestamp = new Date(this.#ms).toISOString();
    this.events.push({ sequence, id: `evt_${sequence}`, type, runId: "run_1", agentId: "demo", timestamp, v: 1, payload });
    return this;
  }

  /** Adds the events up to the first that an agent tells. */
  running(): this {
    const policy = { sandbox: "workspace-write", network: "ask", approval: "ask", timeoutMs: 1, idleMs: 1 };
    const task = { kind: "text", text: "Say hello.", redacted: false };
    return this.add("run.created", {
      task, actor: PERSON, workspace: WORKSPACE, agentId: "demo", backendProfile: "demo", sessionId: "ses_1",
      executionPolicy: policy, onReject: "cancel",
    })
      .add("run.planned", {
        edgeId: "local", workspacePolicy: "allowlist", runtimeProfile: "demo", approvalPolicy: { preset: "default", version: 1 },
      })
      .add("run.accepted", { edgeId: "local" })
      .add("run.preparing", { checks: ["workspace"] })
      .add("run.started", { backendKind: "scripted", protocol: "script", checks: { workspace: "ok" } });
  }

  /** Adds an approval. */
  ask(id: string, key = `ask-${id}`, request: unknown = { kind: "shell", command: "make", cwd: "." }, seconds = 1): this {
    return this.add(
      "run.approval.requested",
      {
        approvalId: id, key, request, redacted: false, digest: `d-${id}`, risk: "medium", reason: "no rule", workspace: WORKSPACE,
        actor: { id: "demo", kind: "agent", runId: "run_1" }, expiresAt: "2026-11-17T08:00:00.000Z",
      },
      seconds,
    );
  }

  /** Adds its answer. */
  answer(id: string, resolution = "approved", seconds = 1): this {
    return this.add("run.approval.resolved", { approvalId: id, resolution, decidedBy: PERSON, scope: "once" }, seconds);
  }

  /** Adds the end. */
  completed(): this {
    return this.add("run.completed", { response: "Done.", artifacts: [], diff: "none", metrics: { wallMs: 1, activeMs: 1 } });
  }
}

/** Who asks in tests. */
export const PERSON = { id: "ada", kind: "person" };
/** Where tests work. */
export const WORKSPACE = { id: "wsp_1", label: "shop" };
