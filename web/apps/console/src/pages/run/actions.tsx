// What a person can do to a run: say something, interrupt, finish, cancel. What is not possible now says why.
import { useHub } from "@runyard/react";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, copyText, diagnostics, ErrorNote, Menu, useShortcut, type MenuItem } from "../../ui";
import { goingOn, mayGoOn, refusal, type Deed } from "./allowed";
import { CancelDialog, useCancelling } from "./cancel-dialog";
import { useCommand } from "./command";
import { isEnded } from "./lifecycle";
import { MessageDialog } from "./message-dialog";
import type { ShownRun } from "./run-context";

/** The buttons at the end of the head, and the menu that has all of them. */
export function RunActions({ run }: { run: ShownRun }) {
  useLanguage();
  const { view } = run.snapshot;
  const mayWrite = useHub().can("runs.write");
  const [open, setOpen] = useState<"message" | "cancel" | null>(null);
  const close = useCallback(() => setOpen(null), []);
  const command = useCommand(run);
  const cancelling = useCancelling(run);
  const why = (deed: Deed): string | undefined => {
    // What is read so far may be long past: nothing is done to it.
    if (run.reading !== null) return t("run.refused.reading");
    if (deed === "cancel" && cancelling.pending) return t("run.refused.cancelling");
    const key = refusal(view, deed, mayWrite);
    return key === undefined ? undefined : t(key);
  };
  const ended = isEnded(view.state);
  const keptOpen = view.executionPolicy?.keepOpenMs !== undefined;
  useShortcut("m", "run.key.message", () => setOpen("message"), { when: why("turn") === undefined });
  return (
    <>
      {!ended && view.state !== "unknown" && (
        <div className="acts">
          <Button
            icon="message"
            disabledReason={why("turn")}
            pending={command.waitsFor("turn") || command.waitsFor("steer")}
            onClick={() => setOpen("message")}
          >
            {t("run.messageAgent")}
          </Button>
          <Button
            disabledReason={why("interrupt")}
            pending={command.waitsFor("interrupt")}
            onClick={() => command.send("interrupt")}
          >
            {t("run.interrupt")}
          </Button>
          {keptOpen && (
            <Button disabledReason={why("finish")} pending={command.waitsFor("finish")} onClick={() => command.send("finish")}>
              {t("run.finish")}
            </Button>
          )}
          <Button kind="reject" pending={cancelling.pending} disabledReason={why("cancel")} onClick={() => setOpen("cancel")}>
            {t("run.cancelRun")}
          </Button>
        </div>
      )}
      <MoreMenu
        run={run}
        why={why}
        onMessage={() => setOpen("message")}
        onCancel={() => setOpen("cancel")}
        onSend={command.send}
        keptOpen={keptOpen}
      />
      {open !== "message" && command.refused}
      <MessageDialog run={run} open={open === "message"} onClose={close} command={command} steerRefused={why("steer")} />
      {open !== "cancel" && cancelling.error && (
        <ErrorNote
          error={cancelling.error}
          action={<Button kind="ghost" icon="x" label={t("common.close")} onClick={cancelling.dismiss} />}
        />
      )}
      <CancelDialog
        run={run}
        cancelling={cancelling}
        refused={cancelling.pending ? undefined : why("cancel")}
        open={open === "cancel"}
        onClose={close}
      />
    </>
  );
}

function MoreMenu({
  run,
  why,
  onMessage,
  onCancel,
  onSend,
  keptOpen,
}: {
  run: ShownRun;
  why: (deed: Deed) => string | undefined;
  onMessage: () => void;
  onCancel: () => void;
  onSend: (kind: "interrupt" | "finish") => void;
  keptOpen: boolean;
}) {
  const navigate = useNavigate();
  const { view } = run.snapshot;
  const copy = (text: () => string) => (): void => void copyText(text());
  const deeds: MenuItem[] = [
    { key: "message", icon: "message", label: t("run.messageAgent"), disabledReason: why("turn"), onSelect: onMessage },
    {
      key: "interrupt",
      icon: "minus",
      label: t("run.interrupt"),
      disabledReason: why("interrupt"),
      onSelect: () => onSend("interrupt"),
    },
    ...(keptOpen
      ? [
          {
            key: "finish",
            icon: "check",
            label: t("run.finish"),
            disabledReason: why("finish"),
            onSelect: () => onSend("finish"),
          } as const,
        ]
      : []),
    {
      key: "cancel",
      icon: "cancelled",
      label: t("run.cancelRun"),
      danger: true,
      disabledReason: why("cancel"),
      onSelect: onCancel,
    },
  ];
  const others: MenuItem[] = [
    {
      key: "again",
      icon: "retry",
      label: t("run.runAgain"),
      onSelect: () => void navigate({ to: "/runs/new", search: { from: run.id } }),
    },
    ...(mayGoOn(view)
      ? [
          {
            key: "goOn",
            icon: "message",
            label: t("run.goOn"),
            onSelect: () => void navigate({ to: "/runs/new", search: goingOn(run.id) }),
          } as const,
        ]
      : []),
    { key: "link", icon: "link", label: t("run.copyLink"), onSelect: copy(() => `${location.origin}/runs/${run.id}`) },
    { key: "cli", icon: "terminal", label: t("run.copyCli"), onSelect: copy(() => `runyard runs show ${run.id}`) },
    { key: "diagnostics", icon: "copy", label: t("common.copyDiagnostics"), onSelect: copy(() => diagnostics(facts(run))) },
  ];
  return (
    <Menu
      label={t("run.moreActions")}
      trigger={<Button kind="ghost" icon="more" label={t("run.moreActions")} />}
      groups={isEnded(view.state) ? [others] : [deeds, others]}
    />
  );
}

function facts(run: ShownRun): Record<string, string | number | undefined> {
  const { view, link } = run.snapshot;
  return {
    run: run.id,
    state: view.state,
    lastSequence: view.lastSequence,
    agent: view.agentId ?? undefined,
    backend: view.backendProfile ?? undefined,
    edge: view.edgeId ?? undefined,
    code: view.failure?.code,
    failureKind: view.failure?.failureKind,
    cause: view.failure?.cause,
    degraded: view.degraded.map(({ reason }) => reason).join("; "),
    connection: link.kind,
  };
}
