// Words inside a block: emphasis, code, links. One pass from left to right, so hostile text costs no more than plain text.

/** A piece of a line. Nothing here can carry HTML, a script or an address other than http and https. */
export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; href: string; host: string; children: Inline[] }
  | { kind: "image"; alt: string; host: string };

const DEPTH_MAX = 8;
const TARGET_CHARS_MAX = 2048;
const SHOWN_TARGET_CHARS_MAX = 120;
const MARKERS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" } as const;
type Marker = keyof typeof MARKERS;

interface Frame {
  opener: Marker | "[" | "![" | "";
  children: Inline[];
  /** A link inside a link makes the outer one plain text. */
  dead: boolean;
}

/** The address with its host where it may be followed: http and https only. */
export function safeAddress(target: string): { href: string; host: string } | undefined {
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return undefined;
  const url = new URL(target);
  return { href: url.href, host: url.host };
}

/** The pieces of a text. */
export function parseInline(text: string): Inline[] {
  return new InlineParser(text).parse();
}

class InlineParser {
  private at = 0;
  private plain = "";
  private readonly stack: Frame[] = [{ opener: "", children: [], dead: false }];
  private readonly unclosed = new Set<number>();

  constructor(private readonly text: string) {}

  parse(): Inline[] {
    while (this.at < this.text.length) {
      if (!this.step()) this.plain += this.text[this.at++];
    }
    while (this.stack.length > 1) this.giveUp();
    this.flush();
    return this.stack[0]?.children ?? [];
  }

  private step(): boolean {
    switch (this.text[this.at]) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "*":
      case "_":
      case "~":
        return this.emphasis();
      case "!":
        return this.text[this.at + 1] === "[" && this.open("![");
      case "[":
        return this.open("[");
      case "]":
        return this.closeBracket();
      case "<":
        return this.autolink(1, ">");
      case "h":
      case "H":
        return this.bareLink();
      default:
        return false;
    }
  }

  private top(): Frame {
    const frame = this.stack[this.stack.length - 1];
    if (frame === undefined) throw new Error("the stack keeps its first frame");
    return frame;
  }

  private flush(): void {
    if (this.plain === "") return;
    this.top().children.push({ kind: "text", text: this.plain });
    this.plain = "";
  }

  private add(node: Inline, length: number): true {
    this.flush();
    this.top().children.push(node);
    this.at += length;
    return true;
  }

  private escape(): boolean {
    const next = this.text[this.at + 1];
    if (next === undefined || !/[!-/:-@[-`{-~]/.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  private code(): boolean {
    const ticks = this.run("`");
    const fence = "`".repeat(ticks);
    // A length that found no partner once finds none later: this keeps the whole pass linear.
    let end = this.unclosed.has(ticks) ? -1 : this.text.indexOf(fence, this.at + ticks);
    while (end !== -1 && (this.text[end - 1] === "`" || this.text[end + ticks] === "`")) {
      let next = end + ticks;
      while (this.text[next] === "`") next += 1;
      end = this.text.indexOf(fence, next);
    }
    if (end === -1) {
      this.unclosed.add(ticks);
      this.plain += fence;
      this.at += ticks;
      return true;
    }
    const inner = this.text.slice(this.at + ticks, end).replaceAll("\n", " ");
    const padded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ");
    return this.add({ kind: "code", text: padded ? inner.slice(1, -1) : inner }, end + ticks - this.at);
  }

  private run(char: string): number {
    let end = this.at;
    while (this.text[end] === char) end += 1;
    return end - this.at;
  }

  private emphasis(): boolean {
    const char = this.text[this.at] ?? "";
    const length = this.run(char);
    const marker = (length >= 2 ? char + char : char) as Marker | "~";
    if (marker === "~") return false;
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + marker.length] ?? " ";
    const word = /[\p{L}\p{N}]/u;
    const insideWord = char === "_" && word.test(before) && word.test(after);
    if (!insideWord && !/\s/.test(before) && this.close(marker)) return true;
    const opens = !insideWord && !/\s/.test(after) && !(char === "_" && word.test(before));
    return opens && this.push(marker);
  }

  private push(opener: Frame["opener"]): boolean {
    if (this.stack.length >= DEPTH_MAX) return false;
    this.flush();
    this.stack.push({ opener, children: [], dead: false });
    this.at += opener.length;
    return true;
  }

  private open(opener: "[" | "!["): boolean {
    return this.push(opener);
  }

  private close(marker: Marker): boolean {
    // Emphasis does not reach out of a link's text.
    let at = this.stack.length - 1;
    while (at > 0 && this.stack[at]?.opener !== marker && !this.stack[at]?.opener.endsWith("[")) at -= 1;
    if (this.stack[at]?.opener !== marker) return false;
    while (this.stack.length - 1 > at) this.giveUp();
    this.flush();
    const children = this.stack.pop()?.children ?? [];
    return this.add({ kind: MARKERS[marker], children }, marker.length);
  }

  /** The innermost open thing is none: its opener is a text like any other. */
  private giveUp(): void {
    this.flush();
    const frame = this.stack.pop();
    if (frame === undefined) return;
    this.top().children.push({ kind: "text", text: frame.opener }, ...frame.children);
  }

  private closeBracket(): boolean {
    let at = this.stack.length - 1;
    while (at > 0 && !this.stack[at]?.opener.endsWith("[")) at -= 1;
    if (at === 0) return false;
    while (this.stack.length - 1 > at) this.giveUp();
    const frame = this.top();
    const target = this.target();
    if (target === undefined || frame.dead) {
      this.plain += "]";
      this.at += 1;
      this.giveUp();
      return true;
    }
    this.flush();
    this.stack.pop();
    if (frame.opener === "![") {
      const host = safeAddress(target.address)?.host ?? "";
      return this.add({ kind: "image", alt: plainText(frame.children), host }, target.length);
    }
    for (const outer of this.stack) outer.dead ||= outer.opener === "[";
    return this.add(link(target.address, frame.children), target.length);
  }

  /** What stands between the parentheses after a bracket, without its title. */
  private target(): { address: string; length: number } | undefined {
    if (this.text[this.at + 1] !== "(") return undefined;
    const limit = Math.min(this.text.length, this.at + TARGET_CHARS_MAX);
    let depth = 1;
    for (let end = this.at + 2; end < limit; end += 1) {
      const char = this.text[end];
      if (char === "\n") return undefined;
      if (char === "(") depth += 1;
      if (char === ")") depth -= 1;
      if (depth > 0) continue;
      const inner = this.text.slice(this.at + 2, end).trim();
      const address = inner.split(/\s/, 1)[0] ?? "";
      return { address: address.replace(/^<|>$/g, ""), length: end + 1 - this.at };
    }
    return undefined;
  }

  private autolink(skip: number, closer: string): boolean {
    const end = this.text.slice(this.at, this.at + TARGET_CHARS_MAX).indexOf(closer);
    if (end === -1) return false;
    const target = this.text.slice(this.at + skip, this.at + end);
    const address = /\s/.test(target) ? undefined : safeAddress(target);
    if (address === undefined) return false;
    return this.add({ kind: "link", ...address, children: [{ kind: "text", text: target }] }, end + closer.length);
  }

  private bareLink(): boolean {
    if (/[\p{L}\p{N}:]/u.test(this.text[this.at - 1] ?? " ")) return false;
    if (this.stack.some((frame) => frame.opener.endsWith("["))) return false;
    const ahead = this.text.slice(this.at, this.at + TARGET_CHARS_MAX);
    const found = /^https?:\/\/[^\s<>"'`*\]]+/i.exec(ahead)?.[0];
    if (found === undefined) return false;
    let length = found.length;
    while (length > 0 && ".,;:!?)_~".includes(found[length - 1] ?? "")) length -= 1;
    const text = found.slice(0, length);
    const address = safeAddress(text);
    if (address === undefined) return false;
    return this.add({ kind: "link", ...address, children: [{ kind: "text", text }] }, length);
  }
}

/** What may not be followed is said, so that nobody wonders what stood there. */
function link(target: string, children: Inline[]): Inline {
  const address = safeAddress(target);
  if (address !== undefined) return { kind: "link", ...address, children };
  const shown = target.length > SHOWN_TARGET_CHARS_MAX ? `${target.slice(0, SHOWN_TARGET_CHARS_MAX)}…` : target;
  const words = plainText(children);
  return { kind: "text", text: shown === "" || shown === words ? words : `${words} (${shown})` };
}

/** The words alone. */
export function plainText(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      if (node.kind === "text" || node.kind === "code") return node.text;
      return node.kind === "image" ? node.alt : plainText(node.children);
    })
    .join("");
}
