// Saying something to the agent: into the turn that runs, or as a further turn.
import { useEffect, useRef, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, Modal, Segmented, TextField } from "../../ui";
import type { Command } from "./command";
import type { ShownRun } from "./run-context";

/** The window. What was typed stays until it was taken. */
export function MessageDialog({
  run,
  open,
  onClose,
  command,
  steerRefused,
}: {
  run: ShownRun;
  open: boolean;
  onClose: () => void;
  command: Command;
  steerRefused: string | undefined;
}) {
  useLanguage();
  const [text, setText] = useState("");
  const [wanted, setWanted] = useState<"steer" | "turn">("steer");
  const kind = steerRefused === undefined ? wanted : "turn";
  const field = useRef<HTMLTextAreaElement | HTMLInputElement>(null);
  useEffect(() => {
    if (open) field.current?.focus();
  }, [open]);
  const { taken } = command;
  useEffect(() => {
    if (taken === 0) return;
    setText("");
    onClose();
  }, [taken, onClose]);
  const waits = run.snapshot.view.open.some(({ request }) => request.kind === "apply");
  const send = (): void => {
    if (text.trim() !== "") command.send(kind, text);
  };
  return (
    <Modal
      open={open}
      title={t("run.messageAgent")}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("run.notNow")}</Button>
          <Button
            kind="ink"
            icon="message"
            pending={command.waitsFor(kind)}
            disabledReason={text.trim() === "" ? t("run.sayWhat") : undefined}
            onClick={send}
          >
            {t(kind === "steer" ? "run.sendSteer" : "run.sendTurn")}
          </Button>
        </>
      }
    >
      <div className="form">
        <div className="formnotes">
          <Segmented
            label={t("run.messageKind")}
            value={kind}
            options={[
              { value: "steer", label: t("run.kindSteer") },
              { value: "turn", label: t("run.kindTurn") },
            ]}
            onChange={setWanted}
          />
          <p className="muted">{kind === "steer" ? t("run.steerMeans") : t("run.turnMeans")}</p>
          {steerRefused !== undefined && <p className="muted">{t("run.steerNot", { why: steerRefused })}</p>}
          {kind === "turn" && waits && <p className="soft">{t("run.turnWithdraws")}</p>}
        </div>
        <TextField
          ref={field}
          label={t("run.messageText")}
          value={text}
          onChange={setText}
          rows={6}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
          }}
        />
        {command.refused}
      </div>
    </Modal>
  );
}
