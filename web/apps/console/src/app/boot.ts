// What the server said in the page itself: it is there before the first request.

/** What the page was served by. */
export interface Boot {
  name: string;
  version: string;
  /** False in an application of its own: only the dev page is there. */
  hub: boolean;
  instance: string;
}

const UNKNOWN: Boot = { name: "Runyard", version: "", hub: true, instance: "" };
let read: Boot | undefined;

/** Reads the page's data block once. A page without one (the dev server of Vite) is a hub's. */
export function boot(): Boot {
  read ??= parse(document.getElementById("boot")?.textContent ?? "");
  return read;
}

function parse(text: string): Boot {
  if (text.trim() === "") return UNKNOWN;
  const given: unknown = JSON.parse(text);
  return typeof given === "object" && given !== null ? { ...UNKNOWN, ...given } : UNKNOWN;
}
