// A patch that a request carries, to be looked at: in full, and without anything to choose.
import { useMemo } from "react";
import { t, useLanguage } from "../../i18n";
import { Block, exact } from "../../ui";
import { hunkHead } from "./model";
import { parsePatch, patchName, type PatchPart } from "./patch";
import { INDENT_MAX, Lines } from "./table";

/** A patch as a diff; as it is where it cannot be read as one. */
export function PatchView({ patch }: { patch: string }) {
  useLanguage();
  const files = useMemo(() => parsePatch(patch), [patch]);
  const readable = files.length > 0 && files.every((file) => patchName(file) !== "");
  if (!readable) {
    return (
      <Block wrap label={t("diff.patch")}>
        {exact(patch, INDENT_MAX)}
      </Block>
    );
  }
  return (
    <div className="patchview scroll" tabIndex={0} role="group" aria-label={t("diff.patch")}>
      {files.map((file, index) => (
        <section key={index}>
          <p className="patchview__path">
            <code>{patchName(file)}</code>
          </p>
          {file.parts.map((part, at) => (
            <Part key={at} part={part} path={patchName(file)} />
          ))}
        </section>
      ))}
    </div>
  );
}

function Part({ part, path }: { part: PatchPart; path: string }) {
  if (part.kind === "note") {
    return (
      <p className="muted t12 patchview__note">
        <code>{exact(part.text)}</code>
      </p>
    );
  }
  const { hunk } = part;
  return (
    <div>
      <div className="hunk">
        <code>{hunkHead(hunk)}</code>
      </div>
      <Lines lines={hunk.lines} layout="unified" label={t("diff.hunkLabel", { number: hunk.id, path })} />
    </div>
  );
}
