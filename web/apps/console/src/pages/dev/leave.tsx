// Leaving an action that still runs asks first: going away stops it.
import { useBlocker } from "@tanstack/react-router";
import { useEffect } from "react";
import { t, useLanguage } from "../../i18n";
import { effect } from "../../ui";
import { EffectDialog } from "../system/effect-dialog";

/** Keeps the page while something runs, until a person says that it is to be stopped. */
export function Leave({ running, action, onStop }: { running: boolean; action: string; onStop: () => void }) {
  useLanguage();
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => running && current.pathname !== next.pathname,
    enableBeforeUnload: running,
    withResolver: true,
  });
  const { status, reset } = blocker;
  useEffect(() => {
    // There is nothing to stop any more, so its result stays.
    if (!running && status === "blocked") reset?.();
  }, [running, status, reset]);
  if (blocker.status !== "blocked" || !running) return null;
  return (
    <EffectDialog
      title={t("dev.leaveTitle", { name: action })}
      label={effect("dev.effect.stop", { name: action })}
      danger
      keep={t("dev.keepRunning")}
      pending={false}
      error={null}
      onEffect={() => {
        onStop();
        blocker.proceed();
      }}
      onClose={blocker.reset}
    >
      <p>{t("dev.leaveMeans", { name: action, next: blocker.next.pathname })}</p>
    </EffectDialog>
  );
}
