// Drawn only near the window: what is far away is a place of the right height.
import { useEffect, useRef, useState, type ReactNode } from "react";

/** So far outside of the window something is drawn already. */
const MARGIN = "1200px 0px";

let observer: IntersectionObserver | undefined;
const watched = new WeakMap<Element, (near: boolean) => void>();

function watch(element: Element, tell: (near: boolean) => void): () => void {
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const entry of entries) watched.get(entry.target)?.(entry.isIntersecting);
    },
    { rootMargin: MARGIN },
  );
  watched.set(element, tell);
  observer.observe(element);
  return () => {
    observer?.unobserve(element);
    watched.delete(element);
  };
}

/** Draws its content while it is near; `forced` draws it wherever it is. */
export function Lazy({ height, first = false, forced = false, className, children }: {
  /** How high it will be, as far as that can be guessed. */
  height: number;
  /** Stands in the window from the beginning, so that it never was a place of another height. */
  first?: boolean;
  forced?: boolean;
  className?: string;
  children: () => ReactNode;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(first);
  const measured = useRef(height);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    return watch(element, (now) => {
      // It keeps the height that it had, so that nothing moves when it goes out of sight.
      if (!now && element.offsetHeight > 0) measured.current = element.offsetHeight;
      setNear(now);
    });
  }, []);
  const drawn = near || forced;
  return (
    <div
      ref={place}
      className={className}
      style={drawn ? undefined : { blockSize: measured.current }}
    >
      {drawn && children()}
    </div>
  );
}
