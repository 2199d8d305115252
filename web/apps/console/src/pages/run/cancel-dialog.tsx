// Cancelling a run. The button says which one, and what becomes of what it did.
import { useAction } from "@runyard/react";
import { useEffect, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, effect, EffectButton, ErrorNote, Modal, TextField } from "../../ui";
import { shortRun } from "./words";
import { isEnded } from "./lifecycle";
import type { ShownRun } from "./run-context";
import { firstLine, taskText } from "./words";

/** The window. It closes when the run has ended, however that came. */
export function CancelDialog({ run, open, onClose }: { run: ShownRun; open: boolean; onClose: () => void }) {
  useLanguage();
  const { view } = run.snapshot;
  const [reason, setReason] = useState("");
  const action = useAction("run_cancel", { outlives: true });
  const ended = isEnded(view.state);
  useEffect(() => {
    if (open && ended) onClose();
  }, [open, ended, onClose]);
  const sending = action.status === "running" || (action.status === "ok" && !ended);
  return (
    <Modal
      open={open}
      title={t("run.cancelTitle")}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("run.keepRunning")}</Button>
          <EffectButton
            danger
            icon="cancelled"
            pending={sending}
            label={effect("run.effect.cancel", {}, shortRun(run.id))}
            onClick={() => void action.invoke({ id: run.id, ...(reason.trim() !== "" && { reason: reason.trim() }) })}
          />
        </>
      }
    >
      <div className="form">
        <p className="soft">{firstLine(taskText(view.task))}</p>
        <p className="muted">{t("run.cancelMeans")}</p>
        <TextField label={t("run.cancelReason")} optional={t("common.optional")} value={reason} onChange={setReason} rows={3} />
        {action.error && <ErrorNote error={action.error} />}
      </div>
    </Modal>
  );
}
