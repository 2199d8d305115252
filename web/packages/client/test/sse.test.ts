// Server-sent events, however they are cut.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseParser, type SseMessage } from "../src/index.js";

function parse(pieces: readonly string[], parser = new SseParser()): SseMessage[] {
  return pieces.flatMap((piece) => parser.push(piece));
}

const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => text.replace(/[\r\n\0]/g, ""));
const message = fc.record({ id: line, event: line, data: fc.array(line, { minLength: 1, maxLength: 3 }) });

describe("a stream of events", () => {
  it("gives the same messages wherever its bytes are split", () => {
    const breaks = fc.constantFrom("\n", "\r", "\r\n");
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), breaks, fc.array(fc.nat(200), { maxLength: 12 }), (all, end, cuts) => {
        const text = all
          .map(
            ({ id, event, data }) => [
              `: a comment`, `id: ${id}`, `event: ${event}`, ...data.map((one) => `data: ${one}`), "", "",
            ].join(end),
          )
          .join("");
        const bytes = new TextEncoder().encode(text);
        const decoder = new TextDecoder();
        const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
        const pieces = places.map((place, index) => decoder.decode(bytes.slice(places[index - 1] ?? 0, place), { stream: true }));
        const expected = all.map(({ id, event, data }) => ({ id, event: event || "message", data: data.join("\n") }));
        expect(parse(pieces)).toEqual(expected);
      }),
    );
  });

  it("reads fields as the standard says", () => {
    const table: [string, SseMessage[]][] = [
      ["data\n\n", [{ id: "", event: "message", data: "" }]],
      ["data:x\ndata:  y\n\n", [{ id: "", event: "message", data: "x\n y" }]],
      ["event: only\n\n", []],
      ["id: 7\n\ndata: a\n\n", [{ id: "7", event: "message", data: "a" }]],
      ["id: 7\0\ndata: a\n\n", [{ id: "", event: "message", data: "a" }]],
      ["stranger: x\ndata: a\n\n", [{ id: "", event: "message", data: "a" }]],
      ["data: not over", []],
      [":\n\n", []],
    ];
    for (const [text, expected] of table) expect(parse([text]), text).toEqual(expected);
  });

  it("keeps what the server wants between attempts", () => {
    const parser = new SseParser();
    parse(["retry: 1500\n", "retry: soon\n\n"], parser);
    expect(parser.retryMs).toBe(1500);
  });

  it("keeps nothing of a message that is too long, and reads the next", () => {
    const long = "x".repeat(30);
    for (const text of [`data: ${long}\n\ndata: a\n\n`, `data: ${"x".repeat(9)}\ndata: ${"x".repeat(9)}\n\ndata: a\n\n`]) {
      for (let size = 1; size < text.length; size += 3) {
        const pieces = Array.from(
          { length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size),
        );
        const parser = new SseParser(16);
        expect(parse(pieces, parser).map((one) => one.data), `${size}`).toEqual(["a"]);
        expect(parser.overlong).toBe(1);
      }
    }
  });
});
