// The call in other words, to be run elsewhere with the same result.
import type { ActionManifest } from "@runyard/react";
import { useEffect, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { announce, Button, copyText, Icon, Modal, TextField } from "../../ui";
import { asCommand, asCurl, asJson, asTypeScript, type DevCall } from "./copy-as";

const SHOWN_MS = 2000;

interface Way {
  name: string;
  write: (call: DevCall) => string;
  /** Why there is no such way. */
  refusal: string | undefined;
}

/** Buttons that copy the call as curl, command line, TypeScript and JSON. */
export function CopyBar({ action, application, read }: { action: ActionManifest; application: string; read: () => DevCall | null }) {
  useLanguage();
  const [copied, setCopied] = useState<string | null>(null);
  const [byHand, setByHand] = useState<string | null>(null);
  useEffect(() => {
    if (copied === null) return;
    const timer = setTimeout(() => setCopied(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const onHttp = action["onHttp"] === false ? t("dev.notOnHttp") : undefined;
  const onCommandLine = action["onCommandLine"] === false ? t("dev.notOnCommandLine") : undefined;
  const ways: Way[] = [
    { name: "curl", write: (call) => asCurl(location.origin, action.name, call), refusal: onHttp },
    { name: "CLI", write: (call) => asCommand(application, action.name, call), refusal: onCommandLine },
    { name: "TypeScript", write: (call) => asTypeScript(location.origin, action.name, call), refusal: onHttp },
    { name: "JSON", write: (call) => asJson(action.name, call), refusal: undefined },
  ];
  const copy = async ({ name, write }: Way) => {
    const call = read();
    if (!call) return;
    const text = write(call);
    if (!(await copyText(text))) return setByHand(text);
    setCopied(name);
    announce(t("dev.copiedAs", { name }));
  };
  return (
    <div className="copybar" role="group" aria-label={t("dev.copyAs")}>
      <span className="label">{t("dev.copyAs")}</span>
      {ways.map((way) => (
        <Button
          key={way.name}
          icon={copied === way.name ? "check" : "copy"}
          disabledReason={way.refusal}
          onClick={() => void copy(way)}
          title={t("dev.copyAsName", { name: way.name })}
        >
          {way.name}
        </Button>
      ))}
      <span className="copybar__said muted" data-copied={copied ?? undefined}>
        {copied !== null && (
          <>
            <Icon name="check" small /> {t("dev.copied")}
          </>
        )}
      </span>
      <Modal open={byHand !== null} title={t("dev.copyByHand")} onClose={() => setByHand(null)} wide>
        <TextField label={t("dev.copyByHand")} value={byHand ?? ""} rows={8} mono onChange={() => undefined} />
      </Modal>
    </div>
  );
}
