// Words to a live run. One counts as sent when its event is there, not when the button was pressed.
import { useAction, type CommandKind, type RunView } from "@runyard/react";
import { useEffect, useState, type ReactNode } from "react";
import { t } from "../../i18n";
import { Button, ErrorNote } from "../../ui";
import type { ShownRun } from "./run-context";

/** How a command is given, and what became of it. */
export interface Command {
  send(kind: CommandKind, text?: string): void;
  waitsFor(kind: CommandKind): boolean;
  /** Why the hub did not take it. */
  refused: ReactNode;
  /** Grows with each command that the hub took. */
  taken: number;
}

interface Sent {
  kind: CommandKind;
  /** Set once the hub has answered; the event carries the same. */
  id: string | null;
  since: number;
}

const LOOK_BACK_MAX = 400;

/** Gives commands to a run. */
export function useCommand(run: ShownRun): Command {
  const action = useAction("run_command", { outlives: true });
  const [sent, setSent] = useState<Sent | null>(null);
  const [taken, setTaken] = useState(0);
  const { view } = run.snapshot;
  const id = action.status === "ok" ? action.data?.command.id : undefined;
  useEffect(() => {
    if (id === undefined) return;
    setSent((now) => (now === null ? null : { ...now, id }));
    setTaken((now) => now + 1);
  }, [id]);
  useEffect(() => {
    if (action.status === "error") setSent(null);
  }, [action.status]);
  useEffect(() => {
    if (sent?.id && arrived(view, sent.id, sent.since)) setSent(null);
  }, [sent, view]);
  return {
    send(kind, text) {
      if (sent !== null) return;
      setSent({ kind, id: null, since: view.lastSequence });
      void action.invoke({ id: run.id, kind, ...(text !== undefined && { text }) });
    },
    waitsFor: (kind) => sent?.kind === kind,
    refused: action.error ? (
      <ErrorNote
        error={action.error}
        action={<Button kind="ghost" icon="x" label={t("common.close")} onClick={() => action.dismiss()} />}
      />
    ) : null,
    taken,
  };
}

/** Whether the event of a command is there. It came after the command was given, so few rows are looked at. */
function arrived({ rows }: RunView, id: string, since: number): boolean {
  const end = Math.max(0, rows.length - LOOK_BACK_MAX);
  for (let index = rows.length - 1; index >= end; index -= 1) {
    const row = rows.at(index);
    if ((row.kind === "command" || row.kind === "turn") && row.command?.commandId === id) return true;
    if (row.last <= since) return false;
  }
  return false;
}
