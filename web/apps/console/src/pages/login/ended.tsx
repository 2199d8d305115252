// The session has ended while something was open: it stays behind this window.
import { t, useLanguage } from "../../i18n";
import { Modal } from "../../ui";
import { LoginForm } from "./page";

/** Asks to log in again. It closes by itself, also when somebody logs in in another window. */
export function SessionEnded() {
  useLanguage();
  return (
    <Modal open title={t("common.session.ended")} onClose={() => undefined} closable={false}>
      <p className="muted">{t("common.session.text")}</p>
      <LoginForm heading={false} onDone={() => undefined} />
    </Modal>
  );
}
