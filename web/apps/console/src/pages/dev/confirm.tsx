// The step before an action that asks first: exactly this input, and a button that says what it does.
import type { ActionManifest } from "@runyard/react";
import { t, useLanguage } from "../../i18n";
import { Block, type EffectLabel } from "../../ui";
import { EffectDialog } from "../system/effect-dialog";
import { pretty } from "./pretty";

/** Asks whether an action is to be called with this input. */
export function ConfirmCall({ action, input, label, onYes, onNo }: {
  action: ActionManifest;
  input: unknown;
  /** What it does, verb and object. */
  label: EffectLabel;
  onYes: () => void;
  onNo: () => void;
}) {
  useLanguage();
  const destructive = action.sideEffects === "destructive";
  return (
    <EffectDialog
      title={t("dev.confirmTitle", { deed: label.text })}
      label={label}
      danger={destructive}
      {...(destructive && { typed: action.name })}
      keep={t("dev.doNot")}
      pending={false}
      error={null}
      onEffect={onYes}
      onClose={onNo}
    >
      <p>{t(destructive ? "dev.confirmDestructive" : "dev.confirmMeans", { name: action.name })}</p>
      <Block label={t("dev.input")}>{pretty(input)}</Block>
    </EffectDialog>
  );
}
