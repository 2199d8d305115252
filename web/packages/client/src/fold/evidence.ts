// What an event must say to be believed: a state is entered only with what justifies it.

import type { ArtifactFacts, ArtifactReady } from "../generated/events.js";
import type { KnownEvent } from "./known.js";

/** Whether an event says all that it has to prove. */
export function isProven(event: KnownEvent): boolean {
  return said(event).every((text) => text !== undefined && text.trim() !== "");
}

function said(event: KnownEvent): (string | undefined)[] {
  switch (event.type) {
    case "run.created": {
      const { task, actor, workspace, agentId, backendProfile } = event.payload;
      return [task.kind === "text" ? task.text : task.action, actor.id, workspace.label, agentId, backendProfile];
    }
    case "run.planned": {
      const { edgeId, workspacePolicy, runtimeProfile, approvalPolicy } = event.payload;
      return [edgeId, workspacePolicy, runtimeProfile, approvalPolicy.preset];
    }
    case "run.accepted":
      return [event.payload.edgeId];
    case "run.preparing":
      return [event.payload.checks[0]];
    case "run.started":
      return [event.payload.backendKind, event.payload.protocol, Object.keys(event.payload.checks).sort()[0]];
    case "run.approval.requested":
      return [event.payload.digest, event.payload.actor.id];
    case "run.approval.resolved":
      return [event.payload.decidedBy.id];
    case "run.approval.snoozed":
      return [event.payload.by.id];
    case "run.applying":
      return [event.payload.digest];
    case "run.failed":
      return [event.payload.message, event.payload.recovery];
    case "run.cancel.requested":
    case "run.cancelled":
      return [event.payload.by.id, event.payload.reason];
    case "run.degraded":
      return [event.payload.reason];
    case "run.artifact.ready":
      return ofArtifact(event.payload);
    case "run.preview.ready":
      return [relative(event.payload.path)];
    default:
      return [];
  }
}

/** The kinds that must say something about themselves. */
const TELLING = new Set(["diff", "patch", "file_preview", "screenshot", "generated_docs", "debug"]);

function ofArtifact(artifact: ArtifactReady): (string | undefined)[] {
  const { artifactId, kind, summary, facts, name, content, by } = artifact;
  const always = [artifactId, kind, summary];
  if (facts === undefined) return TELLING.has(kind) ? [undefined] : always;
  const same = facts.kind === kind ? kind : undefined;
  return [...always, same, name === undefined ? undefined : relative(name), content?.blob, by?.id, ...ofFacts(facts)];
}

function ofFacts(facts: ArtifactFacts): (string | undefined)[] {
  switch (facts.kind) {
    case "diff":
      return [facts.base, facts.target, facts.summary, ...paths(facts.paths)];
    case "patch":
      return [...paths(facts.files), facts.applyStatus === "proposed" ? "proposed" : (facts.approvalId ?? undefined)];
    case "file_preview":
      return [relative(facts.path)];
    case "screenshot":
      return [facts.route, facts.theme, facts.language];
    case "generated_docs":
      return [facts.sourceRoute, facts.language];
    case "debug":
      return [];
    case "file":
      return facts.path === undefined ? [] : [relative(facts.path)];
  }
}

function paths(all: readonly string[]): string[] {
  return all.length === 0 ? [""] : all.map(relative);
}

/** The path, or nothing where it is not one of the workspace by its form alone. */
function relative(path: string): string {
  const plain = path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  return plain && !/^\p{L}:|\\|\p{Cc}/u.test(path) ? path : "";
}
