// Which events this version can read, and what each must hold to be read at all.

import type { EventType, RunEvent as KnownEvent } from "../generated/events.js";
import type { RunEvent } from "../view.js";
import { isRecord } from "../envelope.js";

/** An event that this version can read. */
export type { KnownEvent };

type Shape = "text" | "number" | "truth" | "record" | "list";

const ERROR = { message: "text", retrying: "truth" } as const;

/** The fields that the view reads; an event without one of them is shown as unknown. */
const SHAPES: Record<EventType, Record<string, Shape>> = {
  "run.created": {
    task: "record", actor: "record", workspace: "record", agentId: "text", backendProfile: "text", sessionId: "text",
    executionPolicy: "record", onReject: "text",
  },
  "run.planned": { edgeId: "text", workspacePolicy: "text", runtimeProfile: "text", approvalPolicy: "record" },
  "run.accepted": { edgeId: "text" },
  "run.preparing": { checks: "list" },
  "run.started": { backendKind: "text", protocol: "text", checks: "record" },
  "run.secrets.projected": { profile: "text", keys: "list", how: "text" },
  "run.approval.requested": {
    approvalId: "text", key: "text", request: "record", redacted: "truth", digest: "text", risk: "text", reason: "text",
    workspace: "record", actor: "record", expiresAt: "text",
  },
  "run.approval.resolved": { approvalId: "text", resolution: "text", decidedBy: "record" },
  "run.approval.snoozed": { approvalId: "text", until: "text", expiresAt: "text", by: "record" },
  "run.approval.used": { approvalId: "text" },
  "run.gate.judged": { key: "text", request: "record", effect: "text", reason: "text" },
  "run.applying": { approvalId: "text", digest: "text" },
  "run.applied": { approvalId: "text", digest: "text" },
  "run.completed": { response: "text", artifacts: "list", diff: "text", metrics: "record" },
  "run.failed": { code: "text", message: "text", recovery: "text", terminalStatus: "text", metrics: "record" },
  "run.cancelled": { by: "record", reason: "text", metrics: "record" },
  "run.degraded": { reason: "text" },
  "run.command.received": { commandId: "text", command: "text", actor: "record" },
  "run.command.heard": { commandId: "text" },
  "run.cancel.requested": { by: "record", reason: "text" },
  "run.turn.started": {},
  "run.turn.ended": { outcome: "text" },
  "run.message.delta": { item: "text", text: "text", offset: "number" },
  "run.message.completed": { item: "text", text: "text" },
  "run.reasoning": { item: "text", text: "text" },
  "run.plan.updated": { steps: "list" },
  "run.thread.recorded": { thread: "text", after: "number", messages: "list" },
  "run.tool.call": { call: "text", tool: "text", summary: "text", idempotent: "truth" },
  "run.tool.output": { call: "text", stream: "text", text: "text", offset: "number" },
  "run.tool.result": { call: "text", outcome: "text", summary: "text" },
  "run.file.read": { path: "text" },
  "run.diff.ready": { base: "text", target: "text", paths: "list", summary: "text" },
  "run.patch.proposed": { files: "list", summary: "text" },
  "run.artifact.ready": { artifactId: "text", kind: "text", summary: "text" },
  "run.preview.ready": { path: "text", readAt: "text" },
  "runtime.status": { phase: "text", profile: "text", backendKind: "text", protocol: "text" },
  "runtime.died": { message: "text" },
  "runtime.error": ERROR,
  "runtime.unavailable": ERROR,
  "runtime.timeout": ERROR,
  "schema.validation_failed": ERROR,
};

/** Whether this version can read an event. */
export function isKnown(event: RunEvent): event is KnownEvent {
  if (!isKind(event.type) || !isRecord(event.payload)) return false;
  const shape = SHAPES[event.type];
  for (const field in shape) {
    if (!has(event.payload[field], shape[field])) return false;
  }
  return true;
}

/** Whether what was read is an event of a run at all. */
export function isEvent(value: unknown): value is RunEvent {
  return (
    isRecord(value) &&
    Number.isSafeInteger(value["sequence"]) &&
    Number(value["sequence"]) > 0 &&
    typeof value["type"] === "string" &&
    typeof value["timestamp"] === "string" &&
    !Number.isNaN(Date.parse(value["timestamp"]))
  );
}

function isKind(type: string): type is EventType {
  return Object.hasOwn(SHAPES, type);
}

function has(value: unknown, shape: Shape | undefined): boolean {
  switch (shape) {
    case "text": return typeof value === "string";
    case "number": return typeof value === "number";
    case "truth": return typeof value === "boolean";
    case "list": return Array.isArray(value);
    default: return isRecord(value);
  }
}
