// What was pasted, and where to go afterwards.

const CODE = /(?:^|#)([0-9a-f]{64})\s*$/i;

/** The code in a link or standing alone. */
export function codeOf(pasted: string): string | undefined {
  return CODE.exec(pasted.trim())?.[1]?.toLowerCase();
}

/** A path of this page to go to; anything that could lead elsewhere is not taken. */
export function ownPath(next: string | undefined): string {
  return next !== undefined && /^\/(?![/\\])[^\\\s]*$/.test(next) && !next.startsWith("/login") ? next : "/";
}
