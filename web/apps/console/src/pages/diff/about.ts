// What happened to a file besides its lines, in words.
import { maybe, t } from "../../i18n";
import { isLink, SUBMODULE_MODE, type FileChange } from "./model";

const EXECUTABLE = "100755";
const PLAIN = "100644";

/** The words beside a file's name: what happened to it, where it came from, its kind and mode. */
export function aboutFile(file: FileChange): string[] {
  const words: string[] = [];
  if (file.change !== "modified") words.push(maybe(`diff.change.${file.change}`) ?? file.change);
  if (file.oldPath !== undefined && file.oldPath !== file.path) words.push(t("diff.from", { path: file.oldPath }));
  if (isLink(file)) words.push(t("diff.link"));
  if (file.newMode === SUBMODULE_MODE || file.oldMode === SUBMODULE_MODE) words.push(t("diff.submodule"));
  const mode = modeText(file);
  if (mode !== null) words.push(mode);
  return words;
}

function modeText({ oldMode, newMode }: FileChange): string | null {
  if (oldMode === newMode || newMode === undefined) return null;
  if (oldMode === undefined) return newMode === EXECUTABLE ? t("diff.executable") : null;
  if (oldMode === PLAIN && newMode === EXECUTABLE) return t("diff.executable");
  if (oldMode === EXECUTABLE && newMode === PLAIN) return t("diff.notExecutable");
  return t("diff.mode", { from: oldMode, to: newMode });
}
