// A modal window on the browser's own dialog: it traps focus, closes with Escape and gives the focus back.
import { useEffect, useId, useRef, type ReactNode } from "react";
import { t, useLanguage } from "../i18n";
import { Button } from "./button";

/** A window over the page, for something to fill in or to look up; never for reading a run. */
export function Modal({ open, title, onClose, children, footer, wide = false, plain = false, closable = true }: {
  open: boolean;
  title: string;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
  /** Without its own heading row; the title is still its name. */
  plain?: boolean;
  /** False where the page cannot be used before this is done. */
  closable?: boolean;
}) {
  useLanguage();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    if (!element || !open) return;
    const before = document.activeElement;
    if (!element.open) element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={dialog}
      className={`modal${wide ? " modal--wide" : ""}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div className="modal__body">
        <header className={plain ? "sr" : "modal__head"}>
          <h2 id={heading}>{title}</h2>
          {!plain && closable && <Button kind="ghost" icon="x" label={t("common.close")} onClick={onClose} />}
        </header>
        {children}
        {footer && <footer className="modal__foot">{footer}</footer>}
      </div>
    </dialog>
  );
}
