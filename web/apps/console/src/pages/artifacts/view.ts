// How an artifact is shown. What came out of a run is nobody's to trust: only a few kinds are shown by the browser itself, and the
// rest is text or a file to download.
import { parseJson } from "../../ui/schema-form";
import type { Answer } from "../system/data";

/** An artifact. */
export type Artifact = Answer<"artifact_list">["artifacts"][number];

/** What is larger is a file to download. */
export const SHOWN_BYTES_MAX = 8 * 1024 * 1024;

const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** Text by another name. A drawing that could hold a script is shown as its source. */
const TEXTS: readonly string[] = ["application/json", "application/xml", "image/svg+xml"];

/** What can be shown of it. */
export type Shown =
  | { kind: "picture"; type: string }
  | { kind: "markdown" | "json" | "html" | "lines"; text: string }
  | { kind: "binary" };

/** Whether its content is one of the run's own changes, which has its own place. */
export function isChange(artifact: Artifact): boolean {
  return artifact.mediaType === undefined;
}

/** Whether its content is worth reading into the page. */
export function isShown(artifact: Artifact): boolean {
  const type = artifact.mediaType ?? "";
  const isText = type.startsWith("text/") || TEXTS.includes(type);
  return (artifact.bytes ?? 0) <= SHOWN_BYTES_MAX && (isText || PICTURES.includes(type));
}

/** How these bytes are shown, by what the hub found them to be. */
export function shownAs(artifact: Pick<Artifact, "mediaType">, bytes: ArrayBuffer): Shown {
  const type = artifact.mediaType ?? "";
  if (PICTURES.includes(type)) return { kind: "picture", type };
  const text = decoded(bytes);
  if (text === null) return { kind: "binary" };
  if (type === "text/markdown") return { kind: "markdown", text };
  if (type === "text/html") return { kind: "html", text };
  const parsed = type === "application/json" ? parseJson(text) : null;
  // One with a number that a script would change is shown as it is.
  if (parsed?.ok) return { kind: "json", text: JSON.stringify(parsed.value, null, 2) };
  return { kind: "lines", text };
}

function decoded(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** The lines of a text; a last line break begins no further one. */
export function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\n/);
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
}

const BOUNDS = [
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`,
  `<meta http-equiv="x-dns-prefetch-control" content="off">`,
].join("");
/** What leads elsewhere by itself, connects ahead, or holds a page of its own: no rule of a page's content stops all of that. */
const LEADS_AWAY = "link, meta, base, script, template, iframe, frame, frameset, object, embed, portal, fencedframe";
/** What is written out may be read as something else; after so many times it is given up. */
const ROUNDS_MAX = 4;

/** A page with its bounds written into it: whatever shows it, nothing in it runs, and nothing is fetched for it. */
export function bounded(html: string): string {
  const type = /^\s*<!doctype[^>]*>/i.exec(html)?.[0] ?? "";
  // A template of a document that nobody sees: what is read into it is inert, and read as where no script runs.
  const page = document.implementation.createHTMLDocument("").createElement("template");
  let text = html.slice(type.length);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    page.innerHTML = text;
    const found = page.content.querySelectorAll(LEADS_AWAY);
    if (round > 0 && found.length === 0) return `${type === "" ? "" : "<!doctype html>"}${BOUNDS}${text}`;
    for (const element of found) element.remove();
    text = page.innerHTML;
  }
  return BOUNDS;
}
