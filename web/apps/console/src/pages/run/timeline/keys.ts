// The keys of the timeline.
import type { RefObject } from "react";
import { useShortcut } from "../../../ui";
import type { RunPlace } from "../location";
import type { Source } from "./index";
import type { ListControl } from "./list";

/** Registers them for as long as the timeline is shown. */
export function useTimelineKeys(place: RunPlace, source: RefObject<Source | null>, control: RefObject<ListControl | null>): void {
  const chosen = (): number | undefined => {
    const position = place.selected === null ? undefined : source.current?.positionOf(place.selected);
    return typeof position === "number" ? position : undefined;
  };
  const go = (step: 1 | -1): void => {
    const rows = source.current;
    if (rows === null || rows.count === 0) return;
    const from = chosen() ?? (step === 1 ? -1 : rows.count);
    const next = Math.min(rows.count - 1, Math.max(0, from + step));
    place.select(rows.sequenceAt(next));
    control.current?.show(next);
    control.current?.focus(next);
  };
  useShortcut("j", "run.key.next", () => go(1));
  useShortcut("k", "run.key.previous", () => go(-1));
  useShortcut("o", "run.key.open", () => {
    const position = chosen();
    if (position !== undefined) source.current?.toggle(position);
  });
  useShortcut("shift+g", "run.key.end", () => control.current?.follow());
  useShortcut("end", "run.key.end", () => control.current?.follow());
  useShortcut("g g", "run.key.top", () => control.current?.top());
  useShortcut("escape", "run.key.close", () => place.select(null), { when: place.selected !== null });
}
