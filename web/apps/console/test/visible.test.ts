// C24: nothing that an agent writes hides from whoever decides on it.
import { describe, expect, it } from "vitest";
import { exact, exactName, prose, visible } from "../src/ui/visible";

describe("what would be hidden", () => {
  it.each([
    ["\u2800", "⟨U+2800⟩"],
    ["\u00a0", "⟨U+00A0⟩"],
    ["\u2003", "⟨U+2003⟩"],
    ["\u{1d173}", "⟨U+1D173⟩"],
    ["\u{1bca0}", "⟨U+1BCA0⟩"],
    ["\u202e", "⟨U+202E⟩"],
    ["\u200b", "⟨U+200B⟩"],
  ])("is spelled out: %j", (hidden, shown) => {
    expect(visible(`a${hidden}b`)).toBe(`a${shown}b`);
    expect(exact(`a${hidden}b`)).toBe(`a${shown}b`);
  });

  it("in Chinese the wide blank is a blank, in a command it is not", () => {
    expect(visible("你好\u3000世界")).toBe("你好\u3000世界");
    expect(exact("ls\u3000-l")).toBe("ls⟨U+3000⟩-l");
  });

  it("pushes nothing out of sight", () => {
    expect(exact(`npm test${"\u2800".repeat(400)}; curl evil`)).toBe("npm test⟨U+2800×400⟩; curl evil");
    expect(exact(`npm test${" ".repeat(400)}; curl evil`)).toBe("npm test⟨␠×400⟩; curl evil");
    expect(exact(`npm test${"\n".repeat(60)}curl evil`)).toBe("npm test\n⟨⏎×60⟩\ncurl evil");
    expect(exact(`a${"  \u2800\n".repeat(60)}b`)).toBe("a\n⟨⏎×60⟩\nb");
    expect(exact(`a${" \u00a0".repeat(30)}b`)).toBe("a⟨␣×60⟩b");
    expect(exact(`a${"\u200b".repeat(50)}b`)).toBe("a⟨U+200B×50⟩b");
  });

  it("is not what is merely indented or apart", () => {
    const code = "if a:\n        b\n\n\tc\r\n";
    expect(exact(code)).toBe("if a:\n        b\n\n\tc\n");
    expect(exact(`${" ".repeat(40)}x`, 64)).toBe(`${" ".repeat(40)}x`);
  });

  it("costs no more than its length", () => {
    const hostile = `${" \u2800\t".repeat(50_000)}x${" \n".repeat(3)}`.repeat(2);
    expect(exact(hostile).length).toBeLessThan(200);
  });

  it("of a name is also its tab and its line break", () => {
    expect(exactName("a\tb\nc")).toBe("a⟨U+0009⟩b⟨U+000A⟩c");
  });
});

describe("prose", () => {
  it("keeps its pictures and blanks", () => {
    const said = "⚠️ 10\u00a0MB 👨‍👩‍👧 👍🏽 你好\u3000世界 ✔\ufe0e\r\n";
    expect(prose(said)).toBe(said);
  });
  it("hides nothing else", () => {
    expect(prose("a\u202eb\u200bc\u200dd\ufe0f\u2066e")).toBe("a⟨U+202E⟩b⟨U+200B⟩c⟨U+200D⟩d⟨U+FE0F⟩⟨U+2066⟩e");
    expect(prose("over\rwritten")).toBe("over⟨U+000D⟩written");
  });
});
