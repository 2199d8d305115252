// A link to an event of a run, the same in every part of the page.
import { useRouter } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";

/** Leads to the event in the timeline, scrolled to and marked. A plain link: there is one in every row. */
export function SeqLink({
  id,
  sequence,
  children,
  className,
}: {
  id: string;
  sequence: number;
  children?: ReactNode;
  className?: string;
}) {
  const router = useRouter();
  const follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate({ to: "/runs/$id", params: { id }, hash: `seq=${sequence}`, search: keepView, resetScroll: false });
  };
  return (
    <a href={`/runs/${encodeURIComponent(id)}#seq=${sequence}`} className={className} onClick={follow}>
      {children ?? `#${sequence}`}
    </a>
  );
}

function keepView(now: { view?: string }): { view?: string } {
  return now.view === undefined ? {} : { view: now.view };
}
