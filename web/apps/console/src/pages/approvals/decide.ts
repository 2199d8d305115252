// Deciding: one click, one call. What it led to is shown when the run's own event says so.
import { useClient, useData, type actions } from "@runyard/react";
import { useCallback, useEffect, useSyncExternalStore } from "react";
import { fromList, later, type Asked } from "./asked";
import { hear, useHeard } from "./heard";
import type { Scope } from "./label";
import { freshKey, Stages, type Found, type Says, type Stage } from "./sending";

type ApprovalResolveInput = actions.ApprovalResolveInput;

const stages = new Stages();

/** What a person decides. */
export type Decision =
  | { says: "approve"; scope: Scope; answer?: unknown; selection?: NonNullable<ApprovalResolveInput["selection"]> }
  | { says: "reject"; reason: string }
  | { says: "revise"; reason: string; comments: NonNullable<ApprovalResolveInput["comments"]> };

/** The call that a decision is. It carries the digest of what was looked at. */
export function resolveInput(asked: Pick<Asked, "id" | "digest">, decision: Decision): ApprovalResolveInput {
  const bound = { id: asked.id, digest: asked.digest };
  switch (decision.says) {
    case "approve":
      return {
        ...bound,
        decision: "approve",
        scope: decision.scope,
        ...(decision.answer !== undefined && { answer: decision.answer }),
        ...(decision.selection !== undefined && { selection: decision.selection }),
      };
    case "reject":
      return { ...bound, decision: "reject", reason: decision.reason };
    case "revise":
      return { ...bound, decision: "reject", revise: true, reason: decision.reason, comments: decision.comments };
  }
}

/** Where a decision on this approval stands. */
export function useStage(id: string): Stage {
  return useSyncExternalStore(stages.subscribe, () => stages.get(id));
}

/** The approval as it is by now: what the hub said of it counts until the stream brings it too. */
export function useNewest(streamed: Asked): Asked {
  const told = useHeard().get(streamed.id);
  const asked = later(streamed, told);
  return asked.state === "open" && told !== undefined && told.digest !== asked.digest ? told : asked;
}

/** What the hub says of an approval that is open by the run's events: whether it was asked yet, and why it can only be rejected. */
export function useHubsWord(id: string): { said: boolean; denied: string | null } {
  const { data, error, refresh } = useData("approval_show", { id });
  const refused = useStage(id).kind === "refused";
  // A rule may deny it by now.
  useEffect(() => {
    if (refused) void refresh();
  }, [refused, refresh]);
  // The log may still be read up to the decision that the hub knows already.
  useEffect(() => {
    if (data !== undefined && data.approval.state !== "open") hear(fromList(data.approval));
  }, [data]);
  return { said: data !== undefined || error !== null, denied: data?.approval.denied ?? null };
}

/** What a look at the approval found, beside what was decided on. */
function foundBy(asked: Pick<Asked, "digest">, now: Asked | null): Found {
  if (now === null) return "unknown";
  if (now.state !== "open") return "over";
  return now.digest === asked.digest ? "same" : "changed";
}

/** Decides, and says whether the hub took it. */
export function useDecide(asked: Asked): { stage: Stage; decide: (decision: Decision) => Promise<boolean>; dismiss: () => void } {
  const client = useClient();
  const stage = useStage(asked.id);
  const over = asked.state !== "open";
  useEffect(() => {
    if (over) stages.step(asked.id, { kind: "resolved" });
  }, [asked.id, over]);
  const decide = useCallback(
    async (decision: Decision) => {
      const says: Says = decision.says;
      if (!stages.step(asked.id, { kind: "send", says, key: freshKey() })) return false;
      const begun = stages.get(asked.id);
      if (begun.kind !== "sending") return false;
      // This page is the confirming step: what is sent was named on the button that was pressed.
      const options = { confirm: true, idempotencyKey: begun.key };
      const envelope = await client.call("approval_resolve", resolveInput(asked, decision), options);
      if (envelope.ok) {
        stages.step(asked.id, { kind: "accepted" });
        return true;
      }
      const look = await client.call("approval_show", { id: asked.id });
      const now = look.ok ? fromList(look.data.approval) : null;
      const found = foundBy(asked, now);
      if (now !== null && found !== "same") hear(now);
      stages.step(asked.id, { kind: "failed", refusal: envelope.error, found });
      return false;
    },
    [client, asked],
  );
  const dismiss = useCallback(() => void stages.step(asked.id, { kind: "dismiss" }), [asked.id]);
  return { stage, decide, dismiss };
}
