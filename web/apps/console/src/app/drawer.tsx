// The navigation of a narrow window: the same content, from the side.
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, type ReactNode } from "react";
import { t, useLanguage } from "../i18n";
import { Button } from "../ui";

/** The navigation over the page. Going somewhere closes it. */
export function Drawer({ open, onClose, children }: { open: boolean; onClose: () => void; children: ReactNode }) {
  useLanguage();
  const dialog = useRef<HTMLDialogElement>(null);
  const path = useRouterState({ select: (state) => state.location.href });
  const close = useRef(onClose);
  useEffect(() => {
    close.current = onClose;
  });
  useEffect(() => close.current(), [path]);
  useEffect(() => {
    const element = dialog.current;
    if (!open || !element) return;
    element.showModal();
    return () => element.close();
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={dialog}
      className="drawer"
      aria-label={t("common.mainNav")}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div className="nav drawer__nav">
        <Button className="drawer__close" kind="ghost" icon="x" label={t("common.close")} onClick={onClose} />
        {children}
      </div>
    </dialog>
  );
}
