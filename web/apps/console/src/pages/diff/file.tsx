// One file of the diff: what is chosen of it, its hunks, and what is said on its lines.
import { memo, useEffect, useMemo, useState, type ReactNode } from "react";
import { t, useLanguage } from "../../i18n";
import { bytesText, Button, Checkbox, copyText, ErrorNote, Icon, Menu, visible, type MenuItem } from "../../ui";
import { aboutFile } from "./about";
import { CommentCard, CommentForm } from "./comment";
import { isOn, placeOf, type ReviewComment } from "./comments";
import { Lazy } from "./lazy";
import { FOLD_LINES, hasLines, hunkHead, hunkPlaces, isLink } from "./model";
import type { FileBody, FileChange, Hunk, Line } from "./model";
import { hasHunk, hunksChosen, tickOf, withFile, withHunk, type FileChoice } from "./selection";
import type { BodyState, DiffReview, Draft } from "./store";
import { Lines, LINE_PX, type Layout } from "./table";

const HEAD_PX = 38;
const HUNK_PX = 34;
const CONTEXT_LINES = 6;

/** The id of a file on the page. */
export const fileAnchor = (file: string): string => `file-${file}`;
/** The id of a hunk on the page. */
export const hunkAnchor = (file: string, hunk: number): string => `hunk-${file}-${hunk}`;

const isFoldedAtFirst = (file: FileChange): boolean => file.insertions + file.deletions > FOLD_LINES;

/** How high a file will be, roughly, before it is drawn. */
export function guessHeight(file: FileChange): number {
  if (isFoldedAtFirst(file) || file.content !== "text") return HEAD_PX + 48;
  return HEAD_PX + file.hunks * (HUNK_PX + CONTEXT_LINES * LINE_PX) + (file.insertions + file.deletions) * LINE_PX;
}

/** What a file takes. */
export interface FileProps {
  review: DiffReview;
  file: FileChange;
  body: BodyState | undefined;
  choice: FileChoice;
  viewed: boolean;
  comments: readonly ReviewComment[];
  draft: Draft | null;
  layout: Layout;
  /** Whether a part can be chosen now. */
  choosable: boolean;
  /** Why comments cannot be made, where they cannot. */
  commentable: boolean;
  /** One of those that stand in the window at first. */
  first: boolean;
  /** Somebody wants to go there: it is drawn and opened. */
  wanted: boolean;
}

/** A file. */
export const FileSection = memo(function FileSection(props: FileProps) {
  useLanguage();
  const { review, file, body, choice, viewed, comments, draft, wanted } = props;
  const [opened, setOpened] = useState<boolean | null>(null);
  const hasWords = comments.length > 0 || draft !== null;
  const open = wanted || hasWords || (opened ?? !(viewed || isFoldedAtFirst(file)));
  const whole = comments.filter((comment) => comment.at === undefined);
  return (
    <section className="dfile" id={fileAnchor(file.id)} aria-label={file.path} data-path={file.path}>
      <FileHead {...props} open={open} onOpen={setOpened} />
      {whole.map((comment) => (
        <CommentCard key={comment.id} comment={comment} review={review} />
      ))}
      {draft !== null && draft.at === undefined && <CommentForm draft={draft} review={review} />}
      {open ? (
        <Lazy height={guessHeight(file) - HEAD_PX} first={props.first} forced={wanted || hasWords}>
          {() => <Body {...props} state={body} choice={choice} />}
        </Lazy>
      ) : (
        <p className="dfile__folded">
          <span className="muted">{t("diff.folded", { count: file.insertions + file.deletions })}</span>
          <Button onClick={() => setOpened(true)}>{t("diff.showLines", { count: file.insertions + file.deletions })}</Button>
        </p>
      )}
    </section>
  );
});

function FileHead({ open, onOpen, ...props }: FileProps & { open: boolean; onOpen: (open: boolean) => void }) {
  const { review, file, choice, viewed, choosable, commentable } = props;
  const about = aboutFile(file);
  const comment = () => review.beginComment({ id: null, file: file.id, path: file.path, at: undefined, text: "" });
  const onFile: MenuItem = { key: "comment", label: t("diff.commentFile"), icon: "comment", onSelect: comment };
  return (
    <header className="dfile__head">
      {choosable && (
        <Checkbox
          checked={tickOf(choice)}
          hideLabel
          label={t("diff.take", { path: visible(file.path) })}
          onChange={(chosen) => review.choose((choices) => withFile(choices, file, chosen))}
        />
      )}
      <code className="trunc">{visible(file.path)}</code>
      {hasLines(file) && (
        <span className="num mono t12">
          <span className="add">+{file.insertions}</span> <span className="del">−{file.deletions}</span>
        </span>
      )}
      {file.hunks > 1 && (
        <span className="chip chip--line">{t("diff.hunksOf", { count: hunksChosen(choice, file), of: file.hunks })}</span>
      )}
      {about.map((word) => (
        <span key={word} className="chip">
          {visible(word)}
        </span>
      ))}
      {!choosable && choice === "none" && <span className="chip">{t("diff.leftOut")}</span>}
      {file.protected && (
        <span className="chip chip--line" title={t("diff.protectedHelp")}>
          <Icon name="lock" small />
          {t("diff.protected")}
        </span>
      )}
      <span className="end">
        <Checkbox
          checked={viewed}
          label={t("diff.viewed")}
          onChange={(now) => {
            review.setViewed(file.id, now);
            onOpen(!now);
          }}
        />
        <Menu
          label={t("diff.more", { path: file.path })}
          trigger={
            <button type="button" className="btn btn--ghost btn--icon" aria-label={t("diff.more", { path: file.path })}>
              <Icon name="more" />
            </button>
          }
          groups={[
            [
              { key: "fold", label: t(open ? "diff.fold" : "diff.unfold"), onSelect: () => onOpen(!open) },
              { key: "copy", label: t("diff.copyPath"), icon: "copy", onSelect: () => void copyText(file.path) },
              ...(commentable ? [onFile] : []),
            ],
          ]}
        />
      </span>
    </header>
  );
}

function Body(props: FileProps & { state: BodyState | undefined }) {
  const { review, file, state } = props;
  // Also where the changes were made anew under the reader's eyes: nothing comes near then that was not there before.
  useEffect(() => {
    if (state === undefined) void review.openFile(file.id);
  }, [review, file.id, state]);
  if ((file.content === "binary" || file.content === "too_large") && !isLink(file)) {
    const sizes = { before: bytesText(file.oldBytes), after: bytesText(file.newBytes) };
    return <p className="dfile__words">{t(file.content === "binary" ? "diff.binary" : "diff.tooLarge", sizes)}</p>;
  }
  if (state === undefined || state.kind === "loading") return <p className="dfile__words dfile__loading muted">{t("diff.loadingFile")}</p>;
  if (state.kind === "failed") {
    const again = <Button onClick={() => void review.reopenFile(file.id)}>{t("diff.again")}</Button>;
    return <ErrorNote error={{ issues: [], ...state.error }} action={again} />;
  }
  if (state.body.hunks.length === 0) {
    return <p className="dfile__words muted">{t(file.content === "same" ? "diff.same" : "diff.noText")}</p>;
  }
  return (
    <>
      {isLink(file) && <p className="dfile__words muted">{t("diff.linkNow")}</p>}
      <Hunks {...props} body={state.body} />
    </>
  );
}

function Hunks({ body, ...props }: Omit<FileProps, "body"> & { body: FileBody }) {
  const { review, file, choice, comments, draft, layout, choosable, commentable } = props;
  const choose = (hunk: number, chosen: boolean) => review.choose((choices) => withHunk(choices, file, hunk, chosen));
  const places = useMemo(() => hunkPlaces(body.patch), [body.patch]);
  const below = useMemo(() => {
    const onLines = comments.filter((comment) => comment.at !== undefined);
    if (onLines.length === 0 && draft?.at === undefined) return undefined;
    return (line: Line): ReactNode => {
      const here = onLines.filter((comment) => isOn(comment, line) && comment.id !== draft?.id);
      const writing = draft?.at !== undefined && isOn({ ...draft, id: "", writtenAt: "" }, line) ? draft : null;
      if (here.length === 0 && writing === null) return null;
      return (
        <>
          {here.map((comment) => (
            <CommentCard key={comment.id} comment={comment} review={review} />
          ))}
          {writing && <CommentForm draft={writing} review={review} />}
        </>
      );
    };
  }, [comments, draft, review]);
  const onComment = useMemo(() => {
    if (!commentable) return undefined;
    return (line: Line): void => {
      const at = placeOf(line);
      if (at) review.beginComment({ id: null, file: file.id, path: file.path, at, text: "" });
    };
  }, [commentable, review, file]);
  return (
    <>
      {body.hunks.map((hunk, index) => (
        <div
          key={hunk.id}
          id={hunkAnchor(file.id, hunk.id)}
          tabIndex={-1}
          className="dfile__hunk"
          role="group"
          aria-label={t("diff.hunkLabel", { number: hunk.id, path: file.path })}
        >
          <HunkHead
            hunk={hunk}
            place={places[index] ?? ""}
            file={file}
            chosen={hasHunk(choice, hunk.id)}
            {...(choosable && file.hunks > 0 && { onChoose: (chosen: boolean) => choose(hunk.id, chosen) })}
          />
          <Lines
            lines={hunk.lines}
            layout={layout}
            out={!hasHunk(choice, hunk.id)}
            label={t("diff.hunkLabel", { number: hunk.id, path: file.path })}
            {...(below && { below })}
            onComment={onComment}
          />
        </div>
      ))}
      {body.omitted > 0 && <p className="dfile__words">{t("diff.omitted", { size: bytesText(body.omitted) })}</p>}
    </>
  );
}

function HunkHead({ hunk, place, file, chosen, onChoose }: {
  hunk: Hunk;
  place: string;
  file: FileChange;
  chosen: boolean;
  onChoose?: (chosen: boolean) => void;
}) {
  const label = t("diff.hunkLabel", { number: hunk.id, path: file.path });
  const choice = (yes: boolean): ReactNode => (
    <label className={`${yes ? "yes" : "no"}${chosen === yes ? " on" : ""}`}>
      <input
        type="radio"
        className="sr"
        name={`${file.id}-${hunk.id}`}
        checked={chosen === yes}
        onChange={() => onChoose?.(yes)}
      />
      <Icon name={yes ? "check" : "minus"} small />
      {t(yes ? "diff.include" : "diff.leaveOut")}
    </label>
  );
  return (
    <div className="hunk">
      <code>{hunkHead(hunk)}</code>
      <span className="trunc">{visible(place)}</span>
      {onChoose && (
        <div className="seg" role="radiogroup" aria-label={label}>
          {choice(true)}
          {choice(false)}
        </div>
      )}
    </div>
  );
}
