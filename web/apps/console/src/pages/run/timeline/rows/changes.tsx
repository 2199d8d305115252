// What a run changed or produced. Each leads to where it is looked at.
import { Link } from "@tanstack/react-router";
import { t } from "../../../../i18n";
import { bytesText, visible } from "../../../../ui";
import { diffText, filesText, firstLine, isUndo, patchText } from "../../words";
import type { ContentProps } from "./index";

/** A patch that the agent proposed. */
export function PatchRow({ runId, row }: ContentProps<"patch">) {
  const [only] = row.patch.files;
  const single = row.patch.files.length === 1 && only !== undefined;
  const said = single ? patchText(row.patch) : firstLine(row.patch.summary);
  return (
    <div className="line">
      <span className="kind">{t("run.row.patch")}</span>
      {single ? <code className="trunc">{visible(only)}</code> : <span>{filesText(row.patch.files.length)}</span>}
      {said !== "" && <span className="trunc muted">{said}</span>}
      <Link to="/runs/$id/diff" params={{ id: runId }}>
        {t("run.tab.diff")}
      </Link>
    </div>
  );
}

/** What a look at the checkout found. */
export function DiffRow({ runId, row }: ContentProps<"diff">) {
  const stats = row.diff.stats;
  const undo = isUndo(row.diff);
  return (
    <div className="line">
      <span className="kind">{t("run.row.diff")}</span>
      <span>{diffText(row.diff)}</span>
      {stats !== undefined && stats.files > 0 && !undo && (
        <>
          <span className="add num">+{stats.insertions}</span>
          <span className="del num">−{stats.deletions}</span>
        </>
      )}
      <Link to="/runs/$id/diff" params={{ id: runId }}>
        {t("run.tab.diff")}
      </Link>
    </div>
  );
}

/** Something produced to look at. */
export function ArtifactRow({ runId, row }: ContentProps<"artifact">) {
  const { artifactId, name, summary, content, kind } = row.artifact;
  return (
    <div className="line">
      <span className="kind">{t("run.row.artifact")}</span>
      <Link className="trunc" to="/runs/$id/artifacts/$artifact" params={{ id: runId, artifact: artifactId }}>
        {visible(name ?? firstLine(summary))}
      </Link>
      <span className="muted">
        {kind}
        {content !== undefined && <>, {bytesText(content.bytes)}</>}
      </span>
    </div>
  );
}

/** A file that can be looked at as it was. */
export function PreviewRow({ runId, row }: ContentProps<"preview">) {
  const { path, artifactId } = row.preview;
  return (
    <div className="line">
      <span className="kind">{t("run.row.preview")}</span>
      {artifactId === undefined ? (
        <code className="trunc">{visible(path)}</code>
      ) : (
        <Link className="trunc" to="/runs/$id/artifacts/$artifact" params={{ id: runId, artifact: artifactId }}>
          {visible(path)}
        </Link>
      )}
    </div>
  );
}
