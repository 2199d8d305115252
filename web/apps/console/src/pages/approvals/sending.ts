// A decision on its way: one click is one call, and nothing counts as decided before the hub's event says so.

/** What a person says to an approval. */
export type Says = "approve" | "reject" | "revise";

/** Why a call was refused. */
export interface Refusal {
  code: string;
  message: string;
  /** What is wrong, each at its path. */
  issues: readonly { path: readonly (string | number)[]; message: string }[];
}

/** Where a decision stands. */
export type Stage =
  | { kind: "idle" }
  /** The call is under way, or was answered and its event is still to come. */
  | { kind: "sending"; says: Says; key: string; answered: boolean }
  /** The content is not the one that was looked at: it is shown anew, and nothing is sent again by itself. */
  | { kind: "stale"; says: Says }
  /** It was over before this one arrived, which did not count. */
  | { kind: "late" }
  /** The hub said no, and why. */
  | { kind: "refused"; says: Says; refusal: Refusal }
  /** Nobody knows whether it arrived. The same key makes saying it again safe. */
  | { kind: "unsure"; says: Says; key: string; refusal: Refusal };

/** What an approval is found to be after a call failed: over, open with this content or another, or nobody could say. */
export type Found = "over" | "same" | "changed" | "unknown";

/** What can happen to it. */
export type Step =
  | { kind: "send"; says: Says; key: string }
  | { kind: "accepted" }
  | { kind: "failed"; refusal: Refusal; found: Found }
  | { kind: "resolved" }
  | { kind: "dismiss" };

/** Nothing is under way. */
export const IDLE: Stage = { kind: "idle" };

/** Codes after which it is unknown whether the hub heard the call. */
const UNHEARD: ReadonlySet<string> = new Set(["CONNECTION_FAILED", "TIMEOUT", "CANCELLED"]);

/** The same decision again has the same key, so that the hub counts it once. */
function keyFor(stage: Stage, step: Extract<Step, { kind: "send" }>): string {
  return stage.kind === "unsure" && stage.says === step.says ? stage.key : step.key;
}

/** The next stage. */
export function next(stage: Stage, step: Step): Stage {
  switch (step.kind) {
    case "send":
      // The second click of a double click, or a second control: the first is under way.
      if (stage.kind === "sending") return stage;
      return { kind: "sending", says: step.says, key: keyFor(stage, step), answered: false };
    case "accepted":
      return stage.kind === "sending" ? { ...stage, answered: true } : stage;
    case "failed":
      // Where nobody knows whether the hub heard it, the decision that it has may be this one.
      if (step.found === "over") return UNHEARD.has(step.refusal.code) ? IDLE : { kind: "late" };
      if (stage.kind !== "sending") return stage;
      if (UNHEARD.has(step.refusal.code)) return { kind: "unsure", says: stage.says, key: stage.key, refusal: step.refusal };
      // An approval that is open conflicts with a decision only where that was about other content.
      if (step.found === "changed" || (step.found === "same" && step.refusal.code === "CONFLICT")) {
        return { kind: "stale", says: stage.says };
      }
      return { kind: "refused", says: stage.says, refusal: step.refusal };
    case "resolved":
      return stage.kind === "late" ? stage : IDLE;
    case "dismiss":
      return stage.kind === "sending" ? stage : IDLE;
  }
}

/** Stages by approval, outside of components: whoever looks at one elsewhere sees that it is being decided. */
export class Stages {
  readonly #stages = new Map<string, Stage>();
  readonly #listeners = new Set<() => void>();

  get(id: string): Stage {
    return this.#stages.get(id) ?? IDLE;
  }

  /** Takes a step and says whether it changed anything. */
  step(id: string, step: Step): boolean {
    const before = this.get(id);
    const after = next(before, step);
    if (after === before) return false;
    if (after.kind === "idle") this.#stages.delete(id);
    else this.#stages.set(id, after);
    for (const listener of this.#listeners) listener();
    return true;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** A key that no other call has. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
