// When a button that takes effect may be pressed: not before what it would do has stood still on the screen for a moment. A press
// that was meant for something else, such as the second of two quick clicks, finds it inert.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** So long it stands on the screen, untouched, before it can be pressed. */
export const STILL_MS = 1000;
/** What moves by less is still in the same place. */
const MOVED_PX = 8;

/** Where something is: on the screen, and in the page as if nothing were scrolled. */
export interface Place {
  onScreen: number;
  inPage: number;
}

// Scrolling moves it on the screen alone, and what sticks to an edge moves in the page alone: neither puts another under a pointer.
function isMoved(from: Place, to: Place): boolean {
  return Math.abs(from.onScreen - to.onScreen) >= MOVED_PX && Math.abs(from.inPage - to.inPage) >= MOVED_PX;
}

/** What a button has been through. Every time is given from outside, in milliseconds. */
export class Arming {
  #about: string | null = null;
  #place: Place = { onScreen: 0, inPage: 0 };
  #since = 0;
  #press: "none" | "good" | "bad" = "none";

  /** It is on the screen at this place, and would do this. */
  see(about: string, place: Place, now: number): void {
    if (about !== this.#about || isMoved(this.#place, place)) this.restart(now);
    this.#about = about;
    this.#place = place;
  }

  /** Whatever was seen before does not count. */
  restart(now: number): void {
    this.#since = now;
  }

  /** How long it is still inert. */
  waitMs(now: number): number {
    return Math.max(0, this.#since + STILL_MS - now);
  }

  /** A pointer or a key goes down on it. Too early, it has to stand still anew. */
  press(now: number, repeated = false): void {
    // A key that was held before the focus came here was meant for something else.
    if (repeated && this.#press !== "none") return;
    const good = !repeated && this.waitMs(now) === 0;
    this.#press = good ? "good" : "bad";
    if (!good) this.restart(now);
  }

  /** It is clicked: whether that counts. `count` says which one of a quick series it is. */
  click(now: number, count: number): boolean {
    const bad = this.#press === "bad" || count > 1 || this.waitMs(now) > 0;
    this.#press = "none";
    return !bad;
  }

  /** Nobody presses it any more. */
  release(): void {
    this.#press = "none";
  }
}

function placeOf(element: HTMLElement): Place {
  let inPage = 0;
  for (let at: Element | null = element; at instanceof HTMLElement; at = at.offsetParent) inPage += at.offsetTop;
  return { onScreen: element.getBoundingClientRect().top, inPage };
}

/** The arming of a button, and whether it can be pressed now. */
export function useArming(element: RefObject<HTMLElement | null>, about: string): { armed: boolean; arming: Arming; look: () => void } {
  const [arming] = useState(() => new Arming());
  const [armed, setArmed] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const look = useCallback(() => {
    if (element.current) arming.see(about, placeOf(element.current), performance.now());
    const left = arming.waitMs(performance.now());
    setArmed(left === 0);
    clearTimeout(timer.current);
    if (left > 0) timer.current = setTimeout(look, left);
  }, [arming, element, about]);
  // Anew after every drawing: what was above it may be gone.
  useLayoutEffect(look);
  useEffect(() => {
    const shown = () => {
      if (document.visibilityState === "visible") arming.restart(performance.now());
      look();
    };
    addEventListener("resize", look);
    document.addEventListener("visibilitychange", shown);
    return () => {
      removeEventListener("resize", look);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [arming, look]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return { armed, arming, look };
}
