// The icons, 16 by 16, drawn with the current colour. Generated shapes are plain SVG: no library.
import type { ReactElement } from "react";

const SHAPES = {
  accepted: <><path d="M9 2.75h3.25a1 1 0 0 1 1 1v8.5a1 1 0 0 1-1 1H9M2.75 8h6.5M6.75 5.25 9.5 8l-2.75 2.75"/></>,
  agent: <><rect x="2.75" y="5.25" width="10.5" height="8" rx="2"/><path d="M8 5.25v-2.5M6 8.75v1M10 8.75v1"/></>,
  applying: <><path d="M8 2.25v7M5.25 6.75 8 9.5l2.75-2.75M2.75 10.75v1.5a1 1 0 0 0 1 1h8.5a1 1 0 0 0 1-1v-1.5"/></>,
  audit: <><path d="M4 1.75h8a1 1 0 0 1 1 1v11.5l-1.7-1-1.65 1L8 13.25l-1.65 1-1.65-1-1.7 1V2.75a1 1 0 0 1 1-1zM5.75 5.25h4.5M5.75 8.25h4.5"/></>,
  cancelled: <><circle cx="8" cy="8" r="5.75"/><path d="m4.2 11.8 7.6-7.6"/></>,
  check: <><path d="m3.25 8.5 3 3 6.5-7"/></>,
  chev: <><path d="m6 3.5 4.5 4.5L6 12.5"/></>,
  clock: <><circle cx="8" cy="8" r="5.75"/><path d="M8 4.75V8l2.25 1.5"/></>,
  comment: <><path d="M2.75 3h10.5a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1H7l-3.25 2.5V11.5h-1a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM5 6h6M5 8.5h4"/></>,
  completed: <><circle cx="8" cy="8" r="5.75"/><path d="m5.5 8.25 1.75 1.75 3.25-3.75"/></>,
  copy: <><rect x="5.25" y="5.25" width="8.5" height="8.5" rx="1.25"/><path d="M10.75 5.25v-2a1 1 0 0 0-1-1h-6.5a1 1 0 0 0-1 1v6.5a1 1 0 0 0 1 1h2"/></>,
  created: <><circle cx="8" cy="8" r="5.5" strokeDasharray="2.2 2.1"/></>,
  degraded: <><path d="M8 2.5 14 13H2zM8 6.5v3M8 11.2v.05"/></>,
  dev: <><path d="m5 4.5-3.25 3.5L5 11.5M11 4.5l3.25 3.5L11 11.5M9 3.25l-2 9.5"/></>,
  down: <><path d="m3.5 6 4.5 4.5L12.5 6"/></>,
  edge: <><rect x="2.25" y="2.75" width="11.5" height="4.25" rx="1"/><rect x="2.25" y="9" width="11.5" height="4.25" rx="1"/><path d="M4.75 4.9h.05M4.75 11.1h.05"/></>,
  eye: <><path d="M1.75 8S4 3.75 8 3.75 14.25 8 14.25 8 12 12.25 8 12.25 1.75 8 1.75 8z"/><circle cx="8" cy="8" r="1.75"/></>,
  failed: <><path d="M5.6 2.25h4.8l3.35 3.35v4.8l-3.35 3.35H5.6L2.25 10.4V5.6zM6.25 6.25l3.5 3.5M9.75 6.25l-3.5 3.5"/></>,
  file: <><path d="M9.25 1.75h-4.5a1 1 0 0 0-1 1v10.5a1 1 0 0 0 1 1h6.5a1 1 0 0 0 1-1v-8.5zM9.25 1.75v3h3"/></>,
  folder: <><path d="M1.75 4.25a1 1 0 0 1 1-1h3.3l1.5 1.75h5.7a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H2.75a1 1 0 0 1-1-1z"/></>,
  globe: <><circle cx="8" cy="8" r="5.75"/><path d="M2.25 8h11.5M8 2.25c2 1.7 2.75 3.6 2.75 5.75S10 12.05 8 13.75C6 12.05 5.25 10.15 5.25 8S6 3.95 8 2.25z"/></>,
  high: <><path d="M8 2.5 14 13H2zM8 6.5v3M8 11.2v.05"/></>,
  inbox: <><path d="M2 9.25 4 3.25h8l2 6v3.5a.75.75 0 0 1-.75.75H2.75a.75.75 0 0 1-.75-.75zM2 9.25h3.25l1 1.75h3.5l1-1.75H14"/></>,
  link: <><path d="M6.75 9.25a2.75 2.75 0 0 0 3.9 0l2.2-2.2a2.75 2.75 0 0 0-3.9-3.9l-.7.7M9.25 6.75a2.75 2.75 0 0 0-3.9 0l-2.2 2.2a2.75 2.75 0 0 0 3.9 3.9l.7-.7"/></>,
  lock: <><rect x="3.25" y="7" width="9.5" height="6.5" rx="1.25"/><path d="M5.25 7V5a2.75 2.75 0 0 1 5.5 0v2"/></>,
  low: <><circle cx="8" cy="8" r="5.75"/><path d="M8 7.5v3.5M8 5.1v.05"/></>,
  medium: <><path d="M8 1.9 14.1 8 8 14.1 1.9 8zM8 5.25v3.25M8 10.7v.05"/></>,
  menu: <><path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/></>,
  message: <><path d="M2.75 3h10.5a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1H7l-3.25 2.5V11.5h-1a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1z"/></>,
  minus: <><path d="M3.5 8h9"/></>,
  more: <><path d="M3.5 8h.05M8 8h.05M12.5 8h.05" strokeWidth="2.2"/></>,
  needs_approval: <><circle cx="8" cy="5" r="2.5"/><path d="M3 13.5c.4-2.7 2.3-4.25 5-4.25s4.6 1.55 5 4.25"/></>,
  patch: <><path d="M9.25 1.75h-4.5a1 1 0 0 0-1 1v10.5a1 1 0 0 0 1 1h6.5a1 1 0 0 0 1-1v-8.5zM6.25 6.75h3.5M8 5v3.5M6.25 11h3.5"/></>,
  planned: <><circle cx="4" cy="4" r="1.75"/><circle cx="12" cy="12" r="1.75"/><path d="M4 5.75V9a3 3 0 0 0 3 3h3.25"/></>,
  plus: <><path d="M8 3v10M3 8h10"/></>,
  preparing: <><path d="M8 2 13.25 4.75v6.5L8 14l-5.25-2.75v-6.5zM2.9 4.85 8 7.5l5.1-2.65M8 7.5V14"/></>,
  question: <><circle cx="8" cy="8" r="5.75"/><path d="M6.25 6.25c.1-1 .8-1.5 1.75-1.5s1.75.6 1.75 1.5c0 1.25-1.75 1.3-1.75 2.5M8 11.1v.05"/></>,
  retry: <><path d="M13.25 8a5.25 5.25 0 1 1-1.7-3.85L13.25 5.75M13.25 2.5v3.25H10"/></>,
  running: <><circle cx="8" cy="8" r="5.75"/><path d="M6.75 5.75v4.5L10.25 8z" fill="currentColor" strokeWidth="1"/></>,
  runs: <><path d="M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.05M2.5 8h.05M2.5 12h.05"/></>,
  search: <><circle cx="7" cy="7" r="4.25"/><path d="m10.25 10.25 3.25 3.25"/></>,
  shield: <><path d="M8 1.9 13 3.6v4c0 3.1-2 5.3-5 6.5-3-1.2-5-3.4-5-6.5v-4z"/></>,
  terminal: <><rect x="1.75" y="2.75" width="12.5" height="10.5" rx="1.5"/><path d="m4.5 6 2 2-2 2M8.25 10.25h3"/></>,
  up: <><path d="M8 13.5v-8M4.5 8.75 8 5.25l3.5 3.5M3 2.5h10"/></>,
  x: <><path d="m4 4 8 8M12 4l-8 8"/></>,
} satisfies Record<string, ReactElement>;

/** The name of an icon. */
export type IconName = keyof typeof SHAPES;

/** An icon that says nothing by itself: the words stand beside it. */
export function Icon({ name, small = false, className = "" }: { name: IconName; small?: boolean; className?: string }) {
  return (
    <svg className={`i ${small ? "s " : ""}${className}`} viewBox="0 0 16 16" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}
