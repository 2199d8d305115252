// The keys that work now.
import { t, useLanguage } from "../i18n";
import { LinkButton, Modal } from "../ui";
import { overlay } from "./overlay";
import { usePreference } from "./preferences";
import { useShortcuts, type Shortcut } from "./shortcuts";

const NAMES = { shift: "Shift", arrowdown: "↓", arrowup: "↑", escape: "Esc", enter: "Enter" };
const GLOBAL = "common.keys.";

/** Spells keys as they are written on a keyboard. */
export function keysText(keys: string): string[][] {
  const mac = /Mac|iPhone|iPad/.test(navigator.userAgent);
  const names: Record<string, string> = { ...NAMES, mod: mac ? "⌘" : "Ctrl", alt: mac ? "⌥" : "Alt" };
  return keys.split(" ").map((step) => {
    const parts = step.length > 1 && step.includes("+") ? step.split("+") : [step];
    return parts.map((part) => names[part] ?? (part.length === 1 ? part.toUpperCase() : part[0]?.toUpperCase() + part.slice(1)));
  });
}

/** Keys, drawn. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span className="keys__combo">
      {keysText(keys).map((step, index) => (
        <span key={index}>
          {index > 0 && <span className="sr">{t("common.keys.then")}</span>}
          {step.map((part) => (
            <kbd key={part}>{part}</kbd>
          ))}
        </span>
      ))}
    </span>
  );
}

/** The list of keys, those of this page first. */
export function KeyHelp() {
  useLanguage();
  const shortcuts = useShortcuts();
  const single = usePreference("keys");
  const seen = new Set<string>();
  const unique = [...shortcuts].reverse().filter(({ keys }) => !seen.has(keys) && seen.add(keys)).reverse();
  const page = unique.filter(({ description }) => !description.startsWith(GLOBAL));
  const everywhere = unique.filter(({ description }) => description.startsWith(GLOBAL));
  const close = () => overlay(null);
  return (
    <Modal
      open
      wide
      title={t("common.keys.title")}
      onClose={close}
      footer={
        <LinkButton to="/settings" kind="ghost" onClick={close}>
          {t("common.nav.settings")}
        </LinkButton>
      }
    >
      {!single && <p className="muted">{t("common.keys.none")}</p>}
      <div className="keylist">
        {page.length > 0 && <KeyTable title={t("common.keys.page")} shortcuts={page} />}
        <KeyTable title={t("common.keys.global")} shortcuts={everywhere} />
      </div>
    </Modal>
  );
}

function KeyTable({ title, shortcuts }: { title: string; shortcuts: readonly Shortcut[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {shortcuts.map(({ keys, description }) => (
          <div key={keys}>
            <dt>{t(description)}</dt>
            <dd>
              <Keys keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
