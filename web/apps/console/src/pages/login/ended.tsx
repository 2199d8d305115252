// The session has ended while something was open: it stays behind this window.
import { useEffect, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { Modal } from "../../ui";
import { LoginForm } from "./page";

/** Asks to log in again. It closes by itself, also when somebody logs in in another window. */
export function SessionEnded() {
  useLanguage();
  const form = useRef<HTMLDivElement>(null);
  // The window gives the focus to its first button; what is needed here is the field.
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  return (
    <Modal open title={t("common.session.ended")} onClose={() => undefined} closable={false}>
      <p className="muted">{t("common.session.text")}</p>
      <div className="stack" ref={form}>
        <LoginForm again onDone={() => undefined} />
      </div>
    </Modal>
  );
}
