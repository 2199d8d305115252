// Cancelling a run. The button says which one, and what becomes of what it did.
import { useAction, type Failing } from "@runyard/react";
import { useEffect, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, effect, EffectButton, ErrorNote, Modal, TextField } from "../../ui";
import { isEnded } from "./lifecycle";
import type { ShownRun } from "./run-context";
import { firstLine, shortRun, taskText } from "./words";

/** A cancel on its way, whether or not its window is open. */
export interface Cancelling {
  send(reason: string): void;
  /** It was sent, and the run's own event did not come yet. */
  pending: boolean;
  error: Failing | null;
  dismiss(): void;
}

/** Cancels a run. It counts as cancelled when its event is there. */
export function useCancelling({ id, snapshot }: ShownRun): Cancelling {
  const action = useAction("run_cancel", { outlives: true });
  return {
    send: (reason) => void action.invoke({ id, ...(reason.trim() !== "" && { reason: reason.trim() }) }),
    pending: action.status === "running" || (action.status === "ok" && !isEnded(snapshot.view.state)),
    error: action.error,
    dismiss: action.dismiss,
  };
}

/** The window. It closes when the run has ended, however that came. */
export function CancelDialog({
  run,
  cancelling,
  refused,
  open,
  onClose,
}: {
  run: ShownRun;
  cancelling: Cancelling;
  refused: string | undefined;
  open: boolean;
  onClose: () => void;
}) {
  useLanguage();
  const { view } = run.snapshot;
  const [reason, setReason] = useState("");
  const ended = isEnded(view.state);
  useEffect(() => {
    if (open && ended) onClose();
  }, [open, ended, onClose]);
  const { pending, error } = cancelling;
  return (
    <Modal
      open={open}
      title={t("run.cancelTitle")}
      onClose={onClose}
      footer={
        <>
          {/* What is on its way is not kept from happening. */}
          <Button onClick={onClose}>{t(pending ? "common.close" : "run.keepRunning")}</Button>
          <EffectButton
            danger
            icon="cancelled"
            pending={pending}
            disabledReason={refused}
            label={effect("run.effect.cancel", {}, shortRun(run.id))}
            onClick={() => cancelling.send(reason)}
          />
        </>
      }
    >
      <div className="form">
        <p className="soft">{firstLine(taskText(view.task))}</p>
        <p className="muted">{t(view.state === "applying" ? "run.cancelMeansApplying" : "run.cancelMeans")}</p>
        <TextField label={t("run.cancelReason")} optional={t("common.optional")} value={reason} onChange={setReason} rows={3} />
        {error && <ErrorNote error={error} />}
      </div>
    </Modal>
  );
}
