// Where texts begin and end in bytes of UTF-8, which is how events count.

/** How many bytes a text is. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // Both halves of a pair together are four bytes, so each is two.
    bytes += unit < 0x800 ? 1 : unit >= 0xd800 && unit <= 0xdfff ? 1 : 2;
  }
  return bytes;
}

/** What is left of a text after so many of its bytes; a character that is cut is left out. */
export function afterBytes(text: string, skipped: number): string {
  let bytes = 0;
  let at = 0;
  while (at < text.length && bytes < skipped) {
    const point = text.codePointAt(at) ?? 0;
    const units = point > 0xffff ? 2 : 1;
    bytes += byteLength(text.slice(at, at + units));
    at += units;
  }
  return text.slice(at);
}

/** What stands where bytes are missing in the middle of a text. */
export const LOST = "\u2026";

/** A text that is put together from pieces, each with the place where it begins. */
export class GrowingText {
  text = "";
  #bytes = 0;

  /** Adds a piece; what is there already is not added again. `omitted` bytes follow it and are not there. */
  add(piece: string, offset: number, omitted = 0): string {
    const length = byteLength(piece);
    const end = offset + length;
    let added = "";
    if (offset > this.#bytes) added = piece === "" ? "" : LOST + piece;
    else if (end > this.#bytes) added = offset === this.#bytes ? piece : afterBytes(piece, this.#bytes - offset);
    this.text += added;
    this.#bytes = Math.max(this.#bytes, end + omitted);
    return added;
  }
}
