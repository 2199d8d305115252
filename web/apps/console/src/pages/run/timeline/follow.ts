// Following the end of the timeline. It lets go when the reader goes up, and never moves what a reader looks at.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

const NEAR_PX = 24;
const UP_PX = 2;

/** Whether the end is followed, and the ways to start and stop. */
export interface Following {
  on: boolean;
  /** To the end, and on from there. */
  follow(): void;
  letGo(): void;
}

/** Keeps a scroller at its end for as long as the reader is there. `scrollerKey` is another where the scroller is another. */
export function useFollow(scroller: RefObject<HTMLElement | null>, start: boolean, scrollerKey: unknown): Following {
  const [on, setOn] = useState(start);
  const following = useRef(start);
  const lastTop = useRef(0);
  const set = useCallback((next: boolean) => {
    following.current = next;
    setOn(next);
  }, []);

  // After every render: what was added or measured is below, and the end is where the reader wants to be.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!following.current || element === null) return;
    const end = element.scrollHeight - element.clientHeight;
    if (element.scrollTop < end - 1) element.scrollTop = end;
    lastTop.current = element.scrollTop;
  });

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onScroll = (): void => {
      const top = element.scrollTop;
      const left = element.scrollHeight - element.clientHeight - top;
      // What is added meanwhile makes the way longer; only going up lets go.
      if (following.current && top < lastTop.current - UP_PX && left > NEAR_PX) set(false);
      else if (!following.current && top > lastTop.current && left <= UP_PX) set(true);
      lastTop.current = top;
    };
    const onWheel = (event: WheelEvent): void => {
      if (event.deltaY < 0 && element.scrollHeight > element.clientHeight && element.scrollTop > 0) set(false);
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    element.addEventListener("wheel", onWheel, { passive: true });
    return () => {
      element.removeEventListener("scroll", onScroll);
      element.removeEventListener("wheel", onWheel);
    };
  }, [scroller, set, scrollerKey]);

  const follow = useCallback(() => {
    set(true);
    const element = scroller.current;
    if (element !== null) element.scrollTop = element.scrollHeight;
  }, [scroller, set]);
  const letGo = useCallback(() => set(false), [set]);
  return { on, follow, letGo };
}
