// Rejecting: a reason is written, and what it does to the run is said before it is sent.
import { useEffect, useRef, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, Checkbox, effect, EffectButton, TextField, type EffectKey } from "../../ui";
import type { Meaning } from "./asked";

const LABELS: Record<Meaning, EffectKey> = {
  end: "approvals.effect.rejectEnd",
  applyEnd: "approvals.effect.rejectEnd",
  tell: "approvals.effect.rejectTell",
  unknown: "approvals.effect.rejectTell",
  keep: "approvals.effect.rejectKeep",
  fail: "approvals.effect.rejectFail",
};

/** The form of a rejection. */
export function RejectForm({ about, meaning, canRevise, pending, unread, onReject, onRevise, onBack }: {
  /** The id and the digest of what is rejected. */
  about: string;
  meaning: Meaning;
  /** Whether there is an agent that could try again. */
  canRevise: boolean;
  pending: boolean;
  /** Why it is not known yet whether there is something to reject. */
  unread?: string | undefined;
  onReject: (reason: string) => void;
  onRevise: (reason: string) => void;
  onBack: () => void;
}) {
  useLanguage();
  const [reason, setReason] = useState("");
  const [revise, setRevise] = useState(false);
  const field = useRef<HTMLTextAreaElement & HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const said = reason.trim();
  const missing = said === "" ? t("approvals.reasonMissing") : undefined;
  const back = canRevise && revise;
  return (
    <div className="rejectform">
      <TextField
        ref={field}
        label={t("approvals.reason")}
        value={reason}
        onChange={setReason}
        rows={2}
        help={back ? t("approvals.revise") : t(`approvals.means.${meaning}`)}
      />
      {canRevise && <Checkbox checked={revise} onChange={setRevise} label={t("approvals.revise")} />}
      <div className="acts">
        <Button kind="ghost" onClick={onBack}>
          {t("approvals.back")}
        </Button>
        <EffectButton
          className="push"
          danger
          about={about}
          label={effect(back ? "approvals.effect.revise" : LABELS[meaning])}
          pending={pending}
          disabledReason={unread ?? missing}
          onClick={() => (back ? onRevise(said) : onReject(said))}
        />
      </div>
    </div>
  );
}
