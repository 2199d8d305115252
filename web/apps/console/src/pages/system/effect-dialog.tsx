// The step before something takes effect: what will happen, in full, and a button that says so. The focus never begins on the effect.
import type { Failing } from "@runyard/react";
import { useState, type ReactNode } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, EffectButton, ErrorNote, Modal, TextField, type EffectLabel } from "../../ui";

/** What the step takes. */
export interface EffectDialogProps {
  title: string;
  /** What will happen and what will not. */
  children: ReactNode;
  /** Verb, object and scope. */
  label: EffectLabel;
  danger?: boolean;
  /** What has to be typed before the button works. */
  typed?: string;
  /** The button that leaves everything as it is. */
  keep: string;
  pending: boolean;
  error: Failing | null;
  onEffect: () => void;
  onClose: () => void;
}

/** A window that asks before something takes effect. It is mounted while it is open. */
export function EffectDialog({ title, children, label, danger = false, typed, keep, pending, error, onEffect, onClose }: EffectDialogProps) {
  useLanguage();
  const [text, setText] = useState("");
  const missing = typed !== undefined && text.trim() !== typed ? t("system.typeFirst", { name: typed }) : undefined;
  return (
    <Modal
      open
      title={title}
      onClose={onClose}
      footer={
        <>
          {/* What is on its way is not kept from happening. */}
          <Button onClick={onClose}>{pending ? t("common.close") : keep}</Button>
          <EffectButton label={label} danger={danger} pending={pending} disabledReason={missing} onClick={onEffect} />
        </>
      }
    >
      <div className="effect">
        {children}
        {typed !== undefined && (
          <TextField label={t("system.typeName", { name: typed })} value={text} onChange={setText} mono autoComplete="off" />
        )}
        {error && <ErrorNote error={error} issues />}
      </div>
    </Modal>
  );
}
