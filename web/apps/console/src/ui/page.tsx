// The head of a page. Its heading takes the focus when somebody comes here.
import { useEffect, useRef, type ReactNode } from "react";

/** A page's title, how many there are, and what can be done at its end. */
export function PageHead({ title, count, end }: { title: string; count?: ReactNode | undefined; end?: ReactNode }) {
  return (
    <header className="pagehead">
      <PageTitle>{title}</PageTitle>
      {count !== undefined && <span className="muted num pagehead__count">{count}</span>}
      <span className="grow" />
      {end}
    </header>
  );
}

/** The heading of a page, also where it stands in a head of its own. It names the document too. */
export function PageTitle({ children, name, className = "" }: { children: ReactNode; name?: string; className?: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const text = name ?? (typeof children === "string" ? children : undefined);
  useEffect(() => {
    if (text !== undefined) setPageTitle(text);
  }, [text]);
  return (
    <h1 ref={heading} tabIndex={-1} data-page-title className={className} title={name}>
      {children}
    </h1>
  );
}

let page = "";
let waiting = 0;

function show(): void {
  const name = page === "" ? "Runyard" : `${page} · Runyard`;
  document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
}

/** What the page is called in the window's title. */
export function setPageTitle(title: string): void {
  page = title;
  show();
}

/** How many decisions wait for a person: the number before the title. */
export function setWaiting(count: number): void {
  waiting = count;
  show();
}
