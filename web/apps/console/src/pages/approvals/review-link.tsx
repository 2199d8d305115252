// The way to where it can be looked at. It changes nothing, and looks like that.
import { t, useLanguage } from "../../i18n";
import { Kbd, LinkButton } from "../../ui";
import type { Asked } from "./asked";

/** Review: the diff where there is one; in a run's panel the whole request, elsewhere its place in the run. */
export function ReviewLink({ asked, inRun, large = false }: { asked: Asked; inRun: boolean; large?: boolean }) {
  useLanguage();
  const words = (
    <>
      {t("approvals.review")} <span className="ro">{t("approvals.readOnly")}</span>
    </>
  );
  const look = { kind: "review", icon: "eye", large } as const;
  if (asked.ask.kind === "apply") {
    return (
      <LinkButton {...look} to="/runs/$id/diff" params={{ id: asked.runId }}>
        {words}
      </LinkButton>
    );
  }
  if (inRun) {
    return (
      <LinkButton {...look} to="/approvals/$id" params={{ id: asked.id }}>
        {words}
      </LinkButton>
    );
  }
  return (
    <LinkButton
      {...look}
      to="/runs/$id"
      params={{ id: asked.runId }}
      {...(asked.sequence !== null && { hash: `seq=${asked.sequence}` })}
    >
      {words}
      {large && <Kbd>R</Kbd>}
    </LinkButton>
  );
}

/** Puts the focus on the first Review inside an element: decisions begin with looking. */
export function focusReview(inside: Element | null): void {
  const link = inside?.querySelector<HTMLElement>(".btn--review");
  link?.focus();
}
