// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { bounded, isShown, linesOf, shownAs, SHOWN_BYTES_MAX, type Artifact } from "../../src/pages/artifacts/view";

const bytes = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer as ArrayBuffer;

function artifact(mediaType: string | undefined, size = 10): Artifact {
  const made = { id: "art_1", runId: "run_1", kind: "file", summary: "s", redacted: false, peopleOnly: false, contentPath: "/", bytes: size };
  return mediaType === undefined ? made : { ...made, mediaType };
}

describe("an artifact", () => {
  it("is shown by what the hub found its bytes to be, never by what it is called", () => {
    const kinds = (type: string, text: string) => shownAs(artifact(type), bytes(text)).kind;
    expect(kinds("image/png", "x")).toBe("picture");
    expect(kinds("text/markdown", "# a")).toBe("markdown");
    expect(kinds("text/html", "<p>")).toBe("html");
    expect(kinds("text/plain", "a")).toBe("lines");
    expect(kinds("image/svg+xml", "<svg onload=alert(1)>"), "a drawing may hold a script").toBe("lines");
    expect(kinds("application/json", `{"a": 1}`)).toBe("json");
    expect(kinds("application/json", `{"a": 9007199254740993}`), "no number is changed").toBe("lines");
    expect(kinds("text/plain", "a\0b")).toBe("binary");
    expect(shownAs(artifact("text/plain"), new Uint8Array([0xff, 0xfe]).buffer).kind).toBe("binary");
  });

  it("is read into the page only where it can be shown", () => {
    const types = ["text/plain", "image/png", "application/json", "image/svg+xml", "application/pdf", "application/zip", "application/octet-stream", "image/tiff"];
    expect(types.filter((type) => isShown(artifact(type)))).toEqual(types.slice(0, 4));
    expect(isShown(artifact("text/plain", SHOWN_BYTES_MAX + 1))).toBe(false);
  });

  it("has its bounds in itself when it is a page", () => {
    expect(bounded("<!DOCTYPE html>\n<p>x")).toMatch(/^<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><meta [^>]+>\s*<p>x<\/p>$/);
    expect(bounded("<p>x")).toMatch(/^<meta [^>]+><meta [^>]+><p>x<\/p>$/);
  });

  it("c24 connects to nobody and leads nowhere when it is a page", () => {
    const hostile = `<!doctype html><html><head><base href="https://evil.example"><link rel="preconnect" href="https://evil.example">
      <meta http-equiv="refresh" content="0;url=https://evil.example"><title>Berths</title></head>
      <body><p>free</p><link rel="dns-prefetch" href="//evil.example"><iframe srcdoc="&lt;link rel=preconnect href=//evil.example&gt;"></iframe>
      <template shadowrootmode="open"><link rel="preconnect" href="//evil.example"></template></body></html>`;
    const shown = bounded(hostile);
    expect(shown).not.toContain("evil.example");
    expect(shown).toContain("<title>Berths</title>");
    expect(shown).toContain("<p>free</p>");
  });

  it("has lines, and the last line break begins none", () => {
    expect(linesOf("a\nb\r\nc\n")).toEqual(["a", "b", "c"]);
    expect(linesOf("")).toEqual([""]);
  });
});
