// The files at the left: by directory, with ticks, filtered by text. Only the rows in view are drawn.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Checkbox, Icon, Kbd, visible } from "../../ui";
import { hasLines, type FileChange } from "./model";
import { choiceOf, tickOf, tickOfAll, withFile, withFiles, type Choices } from "./selection";
import type { DiffReview } from "./store";
import { filtered, treeRows, type TreeRow } from "./tree";

const ROW_PX = 28;
/** The same for fingers; the stylesheet says so, too. */
const ROW_TOUCH_PX = 44;
const NARROW = "(max-width: 720px)";

/** What the tree takes. */
export interface TreeProps {
  review: DiffReview;
  files: readonly FileChange[];
  choices: Choices;
  commented: ReadonlySet<string>;
  choosable: boolean;
  current: string | null;
  onGo: (file: FileChange) => void;
}

/** The tree of files. */
export function TreePane(props: TreeProps) {
  useLanguage();
  const { review, files, choices, choosable } = props;
  const [text, setText] = useState("");
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const matching = useMemo(() => filtered(files, text), [files, text]);
  const rows = useMemo(() => treeRows(matching, folded), [matching, folded]);
  const list = useRef<HTMLDivElement>(null);
  const row = window.matchMedia(NARROW).matches ? ROW_TOUCH_PX : ROW_PX;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => row,
    overscan: 12,
  });
  const fold = (path: string): void => {
    const next = new Set(folded);
    if (!next.delete(path)) next.add(path);
    setFolded(next);
  };
  return (
    <>
      <div className="listhead tree__head">
        {choosable && (
          <Checkbox
            checked={tickOfAll(choices, matching)}
            hideLabel
            label={t("diff.takeAll")}
            onChange={(chosen) => review.choose((before) => withFiles(before, matching, chosen))}
          />
        )}
        {t("diff.files")} <span className="count">{files.length}</span>
        <span className="end row wide">
          <Kbd>N</Kbd>
          <Kbd>P</Kbd> {t("diff.hunkKeys")}
        </span>
      </div>
      <div className="tree__filter">
        <span className="field">
          <Icon name="search" small />
          <input
            value={text}
            placeholder={t("diff.filter")}
            aria-label={t("diff.filter")}
            onChange={(event) => setText(event.target.value)}
          />
        </span>
      </div>
      <div className="tree__list scroll" ref={list}>
        {matching.length === 0 && files.length > 0 && (
          <p className="muted t12 tree__none">{t("diff.noMatch", { count: files.length })}</p>
        )}
        <ul style={{ blockSize: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return (
              row && (
                <li
                  key={item.key}
                  aria-setsize={rows.length}
                  aria-posinset={item.index + 1}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <Row row={row} {...props} onFold={fold} />
                </li>
              )
            );
          })}
        </ul>
      </div>
    </>
  );
}

function Row({ row, onFold, ...props }: TreeProps & { row: TreeRow; onFold: (path: string) => void }) {
  const { review, choices, choosable, commented, current, onGo } = props;
  if (row.kind === "directory") {
    return (
      <span className="tree__row">
        {choosable && (
          <Checkbox
            checked={tickOfAll(choices, row.files)}
            hideLabel
            label={t("diff.takeDirectory", { path: visible(row.path) })}
            onChange={(chosen) => review.choose((before) => withFiles(before, row.files, chosen))}
          />
        )}
        <button type="button" className="tree__name" aria-expanded={!row.folded} onClick={() => onFold(row.path)}>
          <Icon name="folder" small />
          <span className="trunc" title={row.path}>
            {visible(row.path)}
          </span>
        </button>
      </span>
    );
  }
  const { file } = row;
  const selected = current === file.id;
  return (
    <span className={`tree__row${row.nested ? " d1" : ""}${selected ? " is-sel" : ""}`}>
      {choosable && (
        <Checkbox
          checked={tickOf(choiceOf(choices, file))}
          hideLabel
          label={t("diff.take", { path: visible(file.path) })}
          onChange={(chosen) => review.choose((before) => withFile(before, file, chosen))}
        />
      )}
      <button
        type="button"
        className="tree__name"
        aria-current={selected || undefined}
        title={file.path}
        onClick={() => onGo(file)}
      >
        <span className="trunc">{visible(row.name)}</span>
        {file.protected && <Icon name="lock" small />}
        {commented.has(file.id) && <Icon name="comment" small />}
        {hasLines(file) && (
          <span className="stat">
            <span className="add">+{file.insertions}</span> <span className="del">−{file.deletions}</span>
          </span>
        )}
      </button>
    </span>
  );
}
