// Files that were read. Several in a row are one line.
import { plural, t } from "../../../../i18n";
import { visible } from "../../../../ui";
import { FoldLine } from "./fold";
import type { ContentProps } from "./index";

const PATHS_MAX = 200;

/** What was read. */
export function ReadRow({ row, open, onToggle }: ContentProps<"read">) {
  const [only] = row.paths;
  if (row.paths.length === 1 && only !== undefined) {
    return (
      <div className="line">
        <span className="kind">{t("run.row.read")}</span>
        <code className="trunc">{visible(only)}</code>
      </div>
    );
  }
  const listed = row.paths.slice(0, PATHS_MAX);
  return (
    <div>
      <FoldLine open={open} onToggle={() => onToggle(row.key)}>
        <span className="kind">{plural(row.paths.length, "run.readOne", "run.readMany")}</span>
        {!open && <span className="trunc">{visible(listed.slice(0, 6).join(", "))}</span>}
      </FoldLine>
      {open && (
        <ul className="files">
          {listed.map((path, index) => (
            <li key={index}>{visible(path)}</li>
          ))}
          {row.paths.length > PATHS_MAX && <li>{t("run.andMore", { count: row.paths.length - PATHS_MAX })}</li>}
        </ul>
      )}
    </div>
  );
}
