// Exactly what is asked, in full: nothing shortened, nothing hidden.
import type { ReactNode } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { told } from "../../i18n/known";
import { Block, exact, exactName, Icon, KeyValue, visible } from "../../ui";
import { PatchView } from "../diff/patch-view";
import type { Asked } from "./asked";
import { appliedFiles, hostPort } from "./label";
import type { Ask } from "./request";

/** How many files of changes are named in a list; all of them are in the diff. */
const FILES_SHOWN = 12;

/** Whether the text has characters that would not show. */
export function hasHidden(value: unknown, shown: (text: string) => string = exact): boolean {
  const hides = (each: unknown): boolean => hasHidden(each, shown);
  if (typeof value === "string") return shown(value) !== value.replace(/\r\n/g, "\n");
  if (Array.isArray(value)) return value.some(hides);
  return typeof value === "object" && value !== null && Object.values(value).some(hides);
}

/** The content of a request with what must be known to read it. */
export function Exact({ asked, heading = false }: { asked: Asked; heading?: boolean }) {
  useLanguage();
  const { ask, redacted, notes } = asked;
  return (
    <div className="exact">
      {heading && <p className="label">{t(`approvals.exactly.${ask.kind}`)}</p>}
      <Content ask={ask} />
      {redacted && <Note icon="lock">{t("approvals.redacted")}</Note>}
      {hasHidden(ask, ask.kind === "question" ? visible : exact) && <Note icon="high">{t("approvals.hidden")}</Note>}
      {notes.map((note, index) => (
        <Note key={index} icon="degraded">
          {visible(told(note))}
        </Note>
      ))}
    </div>
  );
}

function Note({ icon, children }: { icon: "lock" | "high" | "degraded"; children: ReactNode }) {
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
      <b>{exact(text)}</b>
    </Block>
  );
  switch (ask.kind) {
    case "shell":
      return (
        <Block command wrap label={label}>
          <b>{exact(ask.command)}</b>
        </Block>
      );
    case "read":
      return plain(ask.path);
    case "write":
      return (
        <>
          <p className="exact__path">
            <code>{exactName(ask.path)}</code>
          </p>
          {ask.content === undefined ? (
            <p className="muted t12">{t("approvals.exactly.writeUnknown")}</p>
          ) : (
            <Block wrap label={label}>
              {exact(ask.content)}
            </Block>
          )}
        </>
      );
    case "patch":
      // What the hub took from the patch, all of it, beside the patch as it is: neither stands for the other.
      return (
        <>
          <Files files={ask.files} shown={ask.files.length} total={ask.files.length} />
          {ask.patch !== "" && <PatchView patch={ask.patch} />}
        </>
      );
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
            pairs={[[t("approvals.facts.effect"), `${exactName(ask.action)}: ${t(`approvals.facts.sideEffects.${ask.sideEffects}`)}`]]}
          />
          <Block wrap label={label}>
            {exact(JSON.stringify(ask.input, null, 2) ?? "")}
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
          {exact(JSON.stringify(ask.raw, null, 2) ?? "")}
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

function Files({ files, shown: most = FILES_SHOWN, total }: { files: readonly string[]; shown?: number; total: number }) {
  const shown = files.slice(0, most);
  const more = total - shown.length;
  return (
    <ul className="block files2">
      {shown.map((file) => (
        <li key={file}>{exactName(file)}</li>
      ))}
      {more > 0 && <li className="muted">{t("approvals.filesMore", { count: more })}</li>}
    </ul>
  );
}
