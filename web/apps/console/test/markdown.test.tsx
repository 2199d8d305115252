// C20: text of agents is Markdown without HTML. It loads nothing, runs nothing, and costs no more than its length.
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { Markdown } from "../src/ui/markdown";
import { MARKDOWN_CHARS_MAX, parseBlocks } from "../src/ui/markdown-blocks";
import { parseInline, plainText } from "../src/ui/markdown-inline";

const html = (text: string): string => renderToStaticMarkup(<Markdown text={text} />).replace(/^<div[^>]*>|<\/div>$/g, "");

describe("what agents write", () => {
  it("reads paragraphs, emphasis and code", () => {
    expect(html("One **strong** and *soft* `a*b`.\nSecond line.\n\nNext.")).toBe(
      '<p>One <strong>strong</strong> and <em>soft</em> <code class="short">a*b</code>.\nSecond line.</p><p>Next.</p>',
    );
    expect(html("**bold *and* both** ~~gone~~ __too__ _em_")).toBe(
      "<p><strong>bold <em>and</em> both</strong> <del>gone</del> <strong>too</strong> <em>em</em></p>",
    );
  });

  it("leaves what is no markup as it stands", () => {
    for (const text of ["snake_case_name", "2 * 3 * 4", "a ** b", "lone ` tick", "[x] y", "~5 minutes~", "a_b *c"]) {
      expect(html(text)).toBe(`<p>${text}</p>`);
    }
    expect(html("\\*plain\\*")).toBe("<p>*plain*</p>");
  });

  it("reads headings without disturbing the page's outline", () => {
    expect(html("## Result ##")).toBe('<p class="md__h">Result</p>');
  });

  it("reads code blocks, also one that is not closed yet", () => {
    expect(html("```sh\nls -la\n```\nafter")).toBe('<pre class="block" tabindex="0" aria-label="sh">ls -la</pre><p>after</p>');
    expect(html("~~~\n```\n")).toContain("```");
    expect(parseBlocks("```ts\nlet a")).toEqual([{ kind: "code", language: "ts", text: "let a" }]);
  });

  it("reads lists with what is nested in them", () => {
    expect(html("- one\n- two\n  - deep\n- [x] done")).toBe(
      '<ul><li>one</li><li>two<ul><li>deep</li></ul></li><li><span class="md__box">☑ </span>done</li></ul>',
    );
    expect(html("3. a\n4. b")).toBe('<ol start="3"><li>a</li><li>b</li></ol>');
    expect(html("- a\n\n- b\n\ntext")).toBe("<ul><li>a</li><li>b</li></ul><p>text</p>");
    expect(html("- a\n\n  ```\n  x\n  ```\n- b")).toContain(">x</pre></li><li>b</li>");
  });

  it("reads tables, quotes and rules", () => {
    expect(html("| a | b |\n|---|:-:|\n| 1 | `2` |")).toContain('<tr><td>1</td><td><code class="short">2</code></td></tr>');
    expect(html("> said\n> so\n\n---")).toBe("<blockquote><p>said\nso</p></blockquote><hr/>");
  });
});

describe("links", () => {
  it("follow http and https only, and say the host", () => {
    expect(html("[docs](https://example.com/a?b=1&c)")).toBe(
      '<p><a href="https://example.com/a?b=1&amp;c" target="_blank" rel="noopener noreferrer">docs</a>' +
        '<span class="muted"> (example.com)</span></p>',
    );
    expect(html("see https://example.com/x.")).toBe(
      '<p>see <a href="https://example.com/x" target="_blank" rel="noopener noreferrer">https://example.com/x</a>.</p>',
    );
    expect(html("<https://example.com>")).toContain('href="https://example.com/"');
  });

  it("say the real host where the words pretend another", () => {
    expect(html("[https://good.example](https://evil.example)")).toContain("(evil.example)");
    expect(html("[x](https://good.example@evil.example/)")).toContain("(evil.example)");
  });

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "//evil.example",
    "docs/a.md",
    "blob:https://x/1",
  ])("never follow %s", (target) => {
    const shown = html(`[click](${target}) <${target}> ![i](${target})`);
    expect(shown).not.toContain("<a");
    expect(shown).not.toContain("href");
    expect(shown).not.toContain("<img");
  });

  it("do not nest", () => {
    const shown = html("[a [b](https://x.example) c](https://y.example)");
    expect(shown).not.toMatch(/<a [^>]*>[^<]*<a /);
    expect(shown).toContain(">b</a>");
  });
});

describe("hostile text", () => {
  it("carries no HTML", () => {
    const shown = html('<script>alert(1)</script> <img src=x onerror=alert(1)> <b>x</b>\n\n<iframe src="https://x"></iframe>');
    expect(shown).not.toMatch(/<(script|img|b|iframe)/);
  });

  it("loads no image", () => {
    expect(html("![a cat](https://evil.example/pixel.png?secret)")).toBe(
      '<p><span class="md__image">image: a cat (evil.example)</span></p>',
    );
  });

  it("is bounded in length, and says what is left out", () => {
    const shown = html("x".repeat(MARKDOWN_CHARS_MAX + 7));
    expect(shown.length).toBeLessThan(MARKDOWN_CHARS_MAX + 500);
    expect(shown.includes("7 more characters")).toBe(true);
  });

  it("is bounded in depth", () => {
    expect(() => html(`${"> ".repeat(5_000)}x`)).not.toThrow();
    expect(() => html(Array.from({ length: 200 }, (_, depth) => `${" ".repeat(depth * 2)}- x`).join("\n"))).not.toThrow();
    expect(() => html("**_".repeat(3_000))).not.toThrow();
    expect(() => html("[".repeat(50_000))).not.toThrow();
  });

  // With a pass that is not linear these would not end within the test's own limit.
  it.each([
    ["backticks", "`a``b```c".repeat(10_000)],
    ["stars", "*a **b ".repeat(14_000)],
    ["brackets", "[a](b".repeat(20_000)],
    ["closing brackets", "](".repeat(50_000)],
    ["images", "![".repeat(50_000)],
    ["angles", "<https://".repeat(11_000)],
    ["dashes", `${"- ".repeat(49_000)}x`],
    ["spaces", `${" ".repeat(99_000)}x`],
    ["pipes", `${"|".repeat(49_000)}\n${"-|".repeat(24_000)}`],
    ["escapes", "\\".repeat(99_999)],
    ["addresses", "https://x".repeat(11_000)],
    ["numbers", "1".repeat(99_999)],
    ["empty items", "- \n".repeat(33_000)],
    ["fences", "```\n~~~\n".repeat(12_000)],
  ])("costs no more than its length: %s", (_, text) => {
    expect(html(text)).not.toBe("");
  });

  it("loses no word", () => {
    const text = "a *b **c [d `e` f ![g";
    expect(plainText(parseInline(text)).replace(/[*`]/g, "")).toBe(text.replace(/[*`]/g, ""));
  });
});
