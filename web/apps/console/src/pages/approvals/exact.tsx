// Exactly what is asked, in full: nothing shortened, nothing hidden.
import type { ReactNode } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { Block, Icon, KeyValue, visible } from "../../ui";
import { PatchView } from "../diff/patch-view";
import { appliedFiles, hostPort } from "./label";
import type { Ask } from "./request";

/** How many files of a patch are named in a list. */
const FILES_SHOWN = 12;

/** Whether the text has characters that would not show. */
export function hasHidden(value: unknown): boolean {
  if (typeof value === "string") return visible(value) !== value.replace(/\r\n/g, "\n");
  if (Array.isArray(value)) return value.some(hasHidden);
  return typeof value === "object" && value !== null && Object.values(value).some(hasHidden);
}

/** The content of a request with what must be known to read it. */
export function Exact({ ask, redacted, heading = false }: { ask: Ask; redacted: boolean; heading?: boolean }) {
  useLanguage();
  return (
    <div className="exact">
      {heading && <p className="label">{t(`approvals.exactly.${ask.kind}`)}</p>}
      <Content ask={ask} />
      {redacted && <Note icon="lock">{t("approvals.redacted")}</Note>}
      {hasHidden(ask) && <Note icon="high">{t("approvals.hidden")}</Note>}
    </div>
  );
}

function Note({ icon, children }: { icon: "lock" | "high"; children: ReactNode }) {
  return (
    <p className="exact__note">
      <Icon name={icon} small /> {children}
    </p>
  );
}

function Content({ ask }: { ask: Ask }): ReactNode {
  const label = t(`approvals.exactly.${ask.kind}`);
  const plain = (text: string) => (
    <Block wrap label={label}>
      <b>{visible(text)}</b>
    </Block>
  );
  switch (ask.kind) {
    case "shell":
      return (
        <Block command wrap label={label}>
          <b>{visible(ask.command)}</b>
        </Block>
      );
    case "read":
      return plain(ask.path);
    case "write":
      return (
        <>
          <p className="exact__path">
            <code>{visible(ask.path)}</code>
          </p>
          {ask.content === undefined ? (
            <p className="muted t12">{t("approvals.exactly.writeUnknown")}</p>
          ) : (
            <Block wrap label={label}>
              {visible(ask.content)}
            </Block>
          )}
        </>
      );
    case "patch":
      return ask.patch === "" ? <Files files={ask.files} total={ask.files.length} /> : <PatchView patch={ask.patch} />;
    case "network":
      return plain(hostPort(ask));
    case "git_commit":
      return plain(ask.message);
    case "git_push":
      return plain(`${ask.branch} → ${ask.remote}`);
    case "publish":
    case "deploy":
      return plain(ask.target);
    case "secret":
      return plain(ask.name);
    case "action":
      return (
        <>
          <KeyValue
            pairs={[[t("approvals.facts.effect"), `${ask.action}: ${t(`approvals.facts.sideEffects.${ask.sideEffects}`)}`]]}
          />
          <Block wrap label={label}>
            {visible(JSON.stringify(ask.input, null, 2) ?? "")}
          </Block>
        </>
      );
    case "question":
      return <p className="exact__question">{visible(ask.prompt)}</p>;
    case "apply":
      return <Applied ask={ask} />;
    case "repeat":
      return plain(ask.step);
    case "unknown":
      return (
        <Block wrap label={label}>
          {visible(JSON.stringify(ask.raw, null, 2) ?? "")}
        </Block>
      );
  }
}

function Applied({ ask }: { ask: Extract<Ask, { kind: "apply" }> }) {
  const left = ask.stats.files - appliedFiles(ask);
  return (
    <>
      <Files files={ask.files} total={ask.stats.files} />
      {left > 0 && <p className="muted t12">{plural(left, "approvals.protectedOne", "approvals.protected")}</p>}
    </>
  );
}

function Files({ files, total }: { files: readonly string[]; total: number }) {
  const shown = files.slice(0, FILES_SHOWN);
  const more = total - shown.length;
  return (
    <ul className="block files2">
      {shown.map((file) => (
        <li key={file}>{visible(file)}</li>
      ))}
      {more > 0 && <li className="muted">{t("approvals.filesMore", { count: more })}</li>}
    </ul>
  );
}
