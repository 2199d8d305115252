// Copying. What was copied is said where it was asked for, not in a message that goes away.
import { useEffect, useState } from "react";
import { t, useLanguage } from "../i18n";
import { Button, type ButtonKind } from "./button";
import { Icon } from "./icon";

const SHOWN_MS = 1600;

/** Puts text on the clipboard. Without the permission of the browser the older way is taken. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "sr";
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

function useCopied(text: string | (() => string)): { done: boolean; copy: () => void } {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [done]);
  return { done, copy: () => void copyText(typeof text === "string" ? text : text()).then(setDone) };
}

/** A button with words that copies. The words change and the width stays that of the longer ones. */
export function CopyButton({ text, label, kind = "plain" }: { text: string | (() => string); label?: string; kind?: ButtonKind }) {
  useLanguage();
  const { done, copy } = useCopied(text);
  return (
    <Button kind={kind} icon={done ? "check" : "copy"} onClick={copy}>
      <span className="swap">
        <span data-off={done || undefined}>{label ?? t("common.copy")}</span>
        <span data-off={!done || undefined} aria-hidden={!done}>
          {t("common.copied")}
        </span>
      </span>
    </Button>
  );
}

/** An icon that copies the text beside it. */
export function Copy({ text, label }: { text: string | (() => string); label: string }) {
  useLanguage();
  const { done, copy } = useCopied(text);
  return (
    <button type="button" className="btn btn--ghost btn--icon" aria-label={done ? t("common.copied") : label} title={label} onClick={copy}>
      <Icon name={done ? "check" : "copy"} small />
    </button>
  );
}
