// A comment on a line or a file. It stays here until it is sent to the agent.
import { useEffect, useRef } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, Clock, visible } from "../../ui";
import { COMMENT_CHARS_MAX, type ReviewComment } from "./comments";
import type { DiffReview, Draft } from "./store";

function placeText(at: ReviewComment["at"]): string {
  if (at === undefined) return t("diff.commentWhole");
  return t(at.side === "new" ? "diff.commentLine" : "diff.commentRemoved", { line: at.line });
}

/** A comment that was written. */
export function CommentCard({ comment, review }: { comment: ReviewComment; review: DiffReview }) {
  useLanguage();
  const { id, file, path, at, text } = comment;
  const edit = () => review.beginComment({ id, file, path, at, text });
  return (
    <div className="cmt">
      <header>
        <b>{t("diff.commentMine")}</b>
        <span className="muted">
          {placeText(comment.at)} · <Clock at={comment.writtenAt} day />
        </span>
        <span className="grow" />
        <span className="chip chip--line">{t("diff.commentToAgent")}</span>
      </header>
      <p className="cmt__text">{visible(comment.text)}</p>
      <footer>
        <Button onClick={edit}>{t("diff.commentEdit")}</Button>
        <Button kind="ghost" onClick={() => review.removeComment(comment.id)}>
          {t("diff.commentRemove")}
        </Button>
        <span className="grow" />
        <span className="muted">{t("diff.commentNotSent")}</span>
      </footer>
    </div>
  );
}

/** The field in which a comment is written. */
export function CommentForm({ draft, review }: { draft: Draft; review: DiffReview }) {
  useLanguage();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    field.current?.focus({ preventScroll: true });
    // Who wrote it goes on where they were.
    return () => {
      if (before instanceof HTMLElement && before.isConnected && document.activeElement === document.body) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <div className="cmt">
      <header>
        <b>{t("diff.commentMine")}</b>
        <span className="muted">{placeText(draft.at)}</span>
        <span className="grow" />
        <span className="chip chip--line">{t("diff.commentToAgent")}</span>
      </header>
      <div className="cmt__field">
        <textarea
          ref={field}
          className="input"
          rows={3}
          maxLength={COMMENT_CHARS_MAX}
          aria-label={t("diff.commentText")}
          placeholder={t("diff.commentText")}
          value={draft.text}
          onChange={(event) => review.typeComment(event.target.value)}
          onKeyDown={(event) => {
            // Keeping a comment sends nothing.
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) review.keepComment();
            if (event.key === "Escape" && draft.text.trim() === "") review.dropComment();
          }}
        />
      </div>
      <footer>
        <Button onClick={() => review.keepComment()}>{t("diff.commentSave")}</Button>
        <Button kind="ghost" onClick={() => review.dropComment()}>
          {t("diff.commentCancel")}
        </Button>
        <span className="grow" />
        <span className="muted">{t("diff.commentNotSent")}</span>
      </footer>
    </div>
  );
}
