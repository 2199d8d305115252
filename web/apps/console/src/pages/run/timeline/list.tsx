// The scrolled list: only what is in view is in the page. What is above the reader never moves.
import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
} from "react";
import { t, useLanguage } from "../../../i18n";
import { useFollow, type Following } from "./follow";

const OVERSCAN_ROWS = 3;
const HEADING_PX = 31;
/** On a phone the line with the run's state stands over the list; the stylesheet says so, too. */
const FACTS_PX = 36;
const FOCUS_FRAMES_MAX = 8;

/** What the list shows and how. */
export interface ListProps {
  count: number;
  keyOf: (position: number) => string;
  estimate: (position: number) => number;
  /** Renders one row; `measure` is its ref. */
  row: (position: number, measure: (element: HTMLElement | null) => void) => ReactNode;
  /** Stands over the rows while they scroll by. */
  sticky?: ((position: number) => ReactNode) | undefined;
  /** Stands below the last row. */
  footer?: ReactNode;
  /** Grows when rows moved that were there already. */
  moved: number;
  /** Where a row is now, by its key of before. */
  positionOfKey: (key: string) => number | undefined;
  /** Starts at its end and goes on with it. */
  followAtStart: boolean;
  label: string;
  control: RefObject<ListControl | null>;
  onFollow: (following: boolean) => void;
  /** Told the first row in view. */
  onTop: (position: number) => void;
  onChoose: (position: number) => void;
  onOpen: (position: number) => void;
}

/** What others can make the list do. */
export interface ListControl {
  show(position: number, align?: "auto" | "center" | "start"): void;
  /** Whether the row is in the page. */
  shows(position: number): boolean;
  focus(position: number): void;
  follow(): void;
  top(): void;
}

const PHONE = "(max-width: 720px)";

/** On a phone the whole page scrolls, with the list in it. */
function useScroller(): { body: RefObject<HTMLDivElement | null>; scroller: RefObject<HTMLElement | null>; narrow: boolean } {
  const body = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLElement | null>(null);
  const [narrow, setNarrow] = useState(() => window.matchMedia(PHONE).matches);
  useEffect(() => {
    const query = window.matchMedia(PHONE);
    const changed = (): void => setNarrow(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  useLayoutEffect(() => {
    scroller.current = narrow ? (body.current?.closest<HTMLElement>(".runpage") ?? body.current) : body.current;
  });
  return { body, scroller, narrow };
}

/** A virtual feed. */
export function FeedList(props: ListProps) {
  const { count, keyOf, estimate, row, sticky, footer, label, control, onFollow } = props;
  useLanguage();
  const { body, scroller, narrow } = useScroller();
  const feed = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => {
    const [outer, inner] = [scroller.current, feed.current];
    if (outer === null || inner === null) return;
    const next = Math.round(inner.getBoundingClientRect().top - outer.getBoundingClientRect().top + outer.scrollTop);
    if (next !== margin) setMargin(next);
  });
  const over = HEADING_PX + (narrow ? FACTS_PX : 0);
  const list = useVirtualizer<HTMLElement, HTMLElement>({
    count,
    getScrollElement: () => scroller.current,
    getItemKey: keyOf,
    estimateSize: estimate,
    overscan: OVERSCAN_ROWS,
    scrollMargin: margin,
    scrollPaddingStart: over,
    useFlushSync: false,
  });
  const following = useFollow(scroller, props.followAtStart, narrow);
  // At the end nothing is put right above: the end itself is held, and what goes up is then the reader alone.
  list.shouldAdjustScrollPositionOnItemSizeChange = following.on ? never : undefined;
  useEffect(() => onFollow(following.on), [following.on, onFollow]);
  useControl(control, list, following, scroller, feed);
  useAnchor(list, following.on, over, props);
  const items = list.getVirtualItems();
  const offset = list.scrollOffset ?? 0;
  // What is below the heading that stays in view.
  const top = list.getVirtualItemForOffset(Math.max(offset, margin) + (sticky === undefined ? 1 : over))?.index ?? 0;
  useEffect(() => {
    props.onTop(top);
  });
  const onKeyDown = useFeedKeys(props, control, feed);
  return (
    <div
      className="tl__body scroll"
      ref={body}
      tabIndex={narrow ? undefined : 0}
      aria-label={narrow ? undefined : label}
      role={narrow ? undefined : "group"}
    >
      {sticky?.(top)}
      <div
        ref={feed}
        role="feed"
        aria-label={label}
        className="tl__feed"
        style={{ blockSize: list.getTotalSize() }}
        onKeyDown={onKeyDown}
      >
        <div style={{ transform: `translateY(${(items[0]?.start ?? 0) - margin}px)` }}>
          {items.map((item) => row(item.index, list.measureElement))}
        </div>
      </div>
      {footer}
    </div>
  );
}

type List = Virtualizer<HTMLElement, HTMLElement>;

function never(): boolean {
  return false;
}

function useControl(
  control: RefObject<ListControl | null>,
  list: List,
  { follow, letGo }: Following,
  scroller: RefObject<HTMLElement | null>,
  feed: RefObject<HTMLElement | null>,
): void {
  useEffect(() => {
    const mine: ListControl = {
      show(position, align = "auto") {
        letGo();
        list.scrollToIndex(position, { align });
      },
      shows: (position) => feed.current?.querySelector(`[data-index="${position}"]`) != null,
      focus(position) {
        let frames = 0;
        const attempt = (): void => {
          const element = feed.current?.querySelector<HTMLElement>(`[data-index="${position}"]`);
          if (element) element.focus({ preventScroll: true });
          else if (frames++ < FOCUS_FRAMES_MAX) requestAnimationFrame(attempt);
        };
        requestAnimationFrame(attempt);
      },
      follow,
      top() {
        letGo();
        scroller.current?.scrollTo({ top: 0 });
      },
    };
    control.current = mine;
    return () => {
      if (control.current === mine) control.current = null;
    };
  }, [control, list, follow, letGo, scroller, feed]);
}

/** Where rows were put in above a reader who is not at the end, the reader stays at the row that was read. */
function useAnchor(list: List, following: boolean, over: number, { moved, positionOfKey }: ListProps): void {
  const before = useRef<{ moved: number; key: string; inside: number } | null>(null);
  useLayoutEffect(() => {
    const last = before.current;
    if (last !== null && last.moved !== moved && !following) {
      const position = positionOfKey(last.key);
      const start = position === undefined ? undefined : list.getOffsetForIndex(position, "start")?.[0];
      if (start !== undefined) list.scrollToOffset(start + last.inside + over);
    }
    const offset = list.scrollOffset ?? 0;
    const first = list.getVirtualItemForOffset(offset);
    before.current = first === undefined ? null : { moved, key: String(first.key), inside: offset - first.start };
  });
}

/** The keys of a feed: between articles with Page Down and Page Up, out of it with Control and End. */
function useFeedKeys(
  { count, onChoose, onOpen }: ListProps,
  control: RefObject<ListControl | null>,
  feed: RefObject<HTMLElement | null>,
) {
  return useCallback(
    (event: KeyboardEvent<HTMLElement>) => {
      const article = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-index]") : null;
      const position = Number(article?.dataset["index"] ?? Number.NaN);
      if (Number.isNaN(position) || event.altKey || event.metaKey) return;
      if (event.ctrlKey && (event.key === "End" || event.key === "Home")) {
        event.preventDefault();
        leave(feed.current, event.key === "End");
        return;
      }
      if (event.ctrlKey) return;
      const step = event.key === "PageDown" ? 1 : event.key === "PageUp" ? -1 : 0;
      const next = position + step;
      if (step !== 0 && next >= 0 && next < count) {
        event.preventDefault();
        control.current?.show(next);
        control.current?.focus(next);
      } else if (event.target === article && event.key === "Enter") {
        event.preventDefault();
        onChoose(position);
        onOpen(position);
      }
    },
    [count, onChoose, onOpen, control, feed],
  );
}

function leave(feed: HTMLElement | null, forward: boolean): void {
  const all = [...document.querySelectorAll<HTMLElement>("a[href], button, [tabindex='0']")].filter(
    (element) => element.offsetParent !== null,
  );
  const outside = all.filter((element) => {
    if (feed === null || feed.contains(element) || element.contains(feed)) return false;
    const after = (feed.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    return after === forward;
  });
  (forward ? outside[0] : outside.at(-1))?.focus();
}

/** The name of the place for those who do not see it. */
export function timelineLabel(): string {
  return t("run.tab.timeline");
}
