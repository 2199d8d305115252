// Reads server-sent events from pieces of text that may be split anywhere.

/** One message of a stream. */
export interface SseMessage {
  /** The last id that the stream said, with this message or before it. */
  id: string;
  event: string;
  data: string;
}

/** How long the data of one message may be; of a longer one nothing is kept. */
export const MESSAGE_CHARS_MAX = 16 * 1024 * 1024;

/** What a stream says, message by message. */
export class SseParser {
  /** What the server wants between two attempts, in milliseconds. */
  retryMs: number | null = null;
  /** The last id that was said. */
  lastId = "";
  /** How many messages were too long. */
  overlong = 0;

  #rest: string[] = [];
  #restChars = 0;
  #afterReturn = false;
  #event = "";
  #data: string[] = [];
  #dataChars = 0;
  #skipping = false;

  constructor(private readonly charsMax = MESSAGE_CHARS_MAX) {}

  /** Takes the next piece and gives the messages that it completes. */
  push(piece: string): SseMessage[] {
    const messages: SseMessage[] = [];
    if (piece === "") return messages;
    // A line feed right after a carriage return belongs to it, also when it comes in the next piece.
    const text = this.#afterReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#afterReturn = piece.endsWith("\r");
    const breaks = /\r\n|\r|\n/g;
    let begin = 0;
    for (let found = breaks.exec(text); found !== null; found = breaks.exec(text)) {
      this.#line(this.#take(text.slice(begin, found.index)), messages);
      begin = breaks.lastIndex;
    }
    this.#keep(text.slice(begin));
    return messages;
  }

  #keep(rest: string): void {
    this.#restChars += rest.length;
    if (this.#restChars <= this.charsMax) {
      if (rest !== "") this.#rest.push(rest);
      return;
    }
    this.#skip();
    this.#rest = [];
  }

  #take(end: string): string {
    if (this.#restChars === 0) return end;
    // Of a line that is too long nothing is left, and a comment says nothing.
    const line = this.#restChars > this.charsMax ? ":" : [...this.#rest, end].join("");
    this.#rest = [];
    this.#restChars = 0;
    return line;
  }

  #skip(): void {
    if (!this.#skipping) this.overlong += 1;
    this.#skipping = true;
    this.#data = [];
    this.#dataChars = 0;
  }

  #line(line: string, messages: SseMessage[]): void {
    if (line === "") return this.#dispatch(messages);
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#addData(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.lastId = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
  }

  #addData(value: string): void {
    this.#dataChars += value.length + 1;
    if (this.#dataChars > this.charsMax) this.#skip();
    if (!this.#skipping) this.#data.push(value);
  }

  #dispatch(messages: SseMessage[]): void {
    if (!this.#skipping && this.#data.length > 0) {
      messages.push({ id: this.lastId, event: this.#event || "message", data: this.#data.join("\n") });
    }
    this.#event = "";
    this.#data = [];
    this.#dataChars = 0;
    this.#skipping = false;
  }
}
