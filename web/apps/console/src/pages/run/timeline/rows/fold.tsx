// A line that opens to more. Its state is kept by the timeline, so a row that scrolls away comes back as it was.
import type { ReactNode } from "react";

/** The line; what it opens to stands below. */
export function FoldLine({ open, onToggle, children }: { open: boolean; onToggle: () => void; children: ReactNode }) {
  return (
    <button type="button" className="line line--fold" aria-expanded={open} onClick={onToggle}>
      {children}
    </button>
  );
}
