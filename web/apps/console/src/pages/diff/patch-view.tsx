// A patch that a request carries, to be looked at: in full, and without anything to choose.
import { useMemo } from "react";
import { t, useLanguage } from "../../i18n";
import { Block, visible } from "../../ui";
import { hunkHead } from "./model";
import { parsePatch, type PatchFile } from "./patch";
import { Lines } from "./table";

/** A patch as a diff; as it is where it cannot be read as one. */
export function PatchView({ patch }: { patch: string }) {
  useLanguage();
  const files = useMemo(() => parsePatch(patch), [patch]);
  const isWhole = (file: PatchFile): boolean => file.path !== "" && (file.hunks.length > 0 || file.notes.length > 0);
  const readable = files.length > 0 && files.every(isWhole);
  if (!readable) {
    return (
      <Block wrap label={t("diff.patch")}>
        {visible(patch)}
      </Block>
    );
  }
  return (
    <div className="patchview scroll" tabIndex={0} role="group" aria-label={t("diff.patch")}>
      {files.map((file, index) => (
        <section key={index}>
          <p className="patchview__path">
            <code>{visible(file.path)}</code>
          </p>
          {file.notes.map((note, at) => (
            <p key={at} className="muted t12 mono patchview__note">
              {visible(note)}
            </p>
          ))}
          {file.hunks.map((hunk) => (
            <div key={hunk.id}>
              <div className="hunk">
                <code>{hunkHead(hunk)}</code>
              </div>
              <Lines lines={hunk.lines} layout="unified" label={t("diff.hunkLabel", { number: hunk.id, path: file.path })} />
            </div>
          ))}
        </section>
      ))}
    </div>
  );
}
