// Text by lines with their numbers. Only those that are seen are in the page.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { visible } from "../../ui";
import { linesOf } from "./view";

const LINE_PX = 18;

/** A text, however long. */
export function Lines({ text, label }: { text: string; label: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => linesOf(text), [text]);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 30,
  });
  const digits = String(lines.length).length;
  return (
    <div className="lines scroll" ref={scroller} tabIndex={0} role="group" aria-label={label}>
      <div className="lines__all" style={{ blockSize: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((item) => (
          <div key={item.index} className="line" style={{ transform: `translateY(${item.start}px)` }}>
            <span className="line__no" style={{ inlineSize: `${digits + 2}ch` }}>
              {item.index + 1}
            </span>
            <code>{visible(lines[item.index] ?? "")}</code>
          </div>
        ))}
      </div>
    </div>
  );
}
