// The files one below the other. Far away ones are only places: ten thousand of them stay usable.
import { useEffect, useMemo, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import type { ReviewComment } from "./comments";
import { fileAnchor, FileSection, guessHeight, hunkAnchor } from "./file";
import { Lazy } from "./lazy";
import type { FileChange } from "./model";
import { choiceOf } from "./selection";
import type { DiffReview, DiffState } from "./store";
import type { Layout } from "./table";

/** So many files are one place as long as they are far away. */
const BUCKET_FILES = 40;
const BETWEEN_PX = 12;
/** So many files may stand in the window at first. */
const FIRST_FILES = 4;

/** Where somebody wants to go. `times` makes the same place a new wish. */
export interface Goal {
  file: string;
  index: number;
  hunk: number;
  times: number;
}

const NONE: readonly ReviewComment[] = [];

/** All files. */
export function FileList({ review, state, layout, choosable, commentable, goal }: {
  review: DiffReview;
  state: DiffState;
  layout: Layout;
  choosable: boolean;
  commentable: boolean;
  goal: Goal | null;
}) {
  useLanguage();
  const { files, bodies, choices, viewed, draft } = state;
  const list = useRef<HTMLDivElement>(null);
  const buckets = useMemo(() => {
    const result: FileChange[][] = [];
    for (let at = 0; at < files.length; at += BUCKET_FILES) result.push(files.slice(at, at + BUCKET_FILES));
    return result;
  }, [files]);
  const comments = useMemo(() => {
    const byFile = new Map<string, ReviewComment[]>();
    for (const comment of state.comments) byFile.set(comment.file, [...(byFile.get(comment.file) ?? []), comment]);
    return byFile;
  }, [state.comments]);
  const loaded = goal === null ? undefined : bodies.get(goal.file)?.kind;
  useEffect(() => {
    if (goal === null) return;
    void review.openFile(goal.file);
    const hunk = goal.hunk > 0 ? document.getElementById(hunkAnchor(goal.file, goal.hunk)) : null;
    const place = hunk ?? document.getElementById(fileAnchor(goal.file));
    place?.scrollIntoView({ block: "start" });
    hunk?.focus({ preventScroll: true });
  }, [goal, loaded, review]);
  const wantedBucket = goal === null ? -1 : Math.floor(goal.index / BUCKET_FILES);
  return (
    <div className="diffs scroll" ref={list} tabIndex={-1}>
      {buckets.map((bucket, index) => (
        <Lazy
          key={index}
          className="diffs__bucket"
          first={index === 0}
          height={bucket.reduce((sum, file) => sum + guessHeight(file) + BETWEEN_PX, 0)}
          forced={index === wantedBucket || (draft !== null && bucket.some((file) => file.id === draft.file))}
        >
          {() =>
            bucket.map((file, at) => (
              <FileSection
                key={file.id}
                review={review}
                file={file}
                body={bodies.get(file.id)}
                choice={choiceOf(choices, file)}
                viewed={viewed.has(file.id)}
                comments={comments.get(file.id) ?? NONE}
                draft={draft?.file === file.id ? draft : null}
                layout={layout}
                choosable={choosable}
                commentable={commentable}
                first={index === 0 && at < FIRST_FILES}
                wanted={goal?.file === file.id}
              />
            ))
          }
        </Lazy>
      ))}
      {!state.complete && files.length > 0 && (
        <p className="muted num">{t("diff.loadingMore", { count: files.length, of: state.diff?.files ?? files.length })}</p>
      )}
    </div>
  );
}
