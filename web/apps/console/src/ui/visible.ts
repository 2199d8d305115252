// Text of others without anything hidden in it: what a character would hide, reorder or push out of sight is what a decision is about.

// Controls, invisible and direction-changing characters.
const HIDDEN = [
  String.raw`\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f`,
  String.raw`\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb`,
  String.raw`\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}`,
].join("");
/** Blanks that are no space: between words they are harmless, in a command they are another word or none. */
const BLANKS = String.raw`\u00a0\u1680\u2000-\u200a\u202f\u205f`;
/** The blank of Chinese prose. */
const WIDE_BLANK = String.raw`\u3000`;

const ANYWHERE = new RegExp(`[${HIDDEN}]`, "gu");
const IN_NAMES = new RegExp(`[${HIDDEN}${BLANKS}]`, "gu");
const IN_EXACT = new RegExp(`[${HIDDEN}${BLANKS}${WIDE_BLANK}]`, "gu");
/** What makes one picture of several, as people write it. */
const PICTURE = /(?<=\p{Emoji}\p{Emoji_Modifier}?)(?:\ufe0f?\u200d(?=\p{Extended_Pictographic})|[\ufe0e\ufe0f])/gu;
/** Whatever shows nothing, in a row. */
const RUNS = new RegExp(`[ \\t\\r\\n${HIDDEN}${BLANKS}${WIDE_BLANK}]+`, "gu");

/** So many blanks in a row are shown as they are. */
const BLANKS_MAX = 16;
/** So many line breaks in a row are shown as they are. */
const BREAKS_MAX = 3;

function spelled(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  return `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
}

const lines = (text: string): string => text.replace(/\r\n/g, "\n");

/** The text with every hidden character spelled out, as in `⟨U+202E⟩`. Line breaks and tabs stay. */
export function visible(text: string): string {
  return lines(text).replace(IN_NAMES, (character) => `⟨${spelled(character)}⟩`);
}

/** The same for what people and agents write: the blanks and pictures of ordinary prose stay as they are. */
export function prose(text: string): string {
  const pictures = new Set([...text.matchAll(PICTURE)].flatMap(({ index, 0: found }) => [...found].map((_, at) => index + at)));
  return text.replace(ANYWHERE, (character, at: number) =>
    pictures.has(at) || (character === "\r" && text[at + 1] === "\n") ? character : `⟨${spelled(character)}⟩`,
  );
}

/**
 * The same for what is exactly taken, such as a command, a path or a host: no blank passes for another, and a long run of
 * blanks or line breaks is counted, as in `⟨␠×400⟩` and `⟨⏎×60⟩`, so that it pushes nothing out of sight.
 */
export function exact(text: string, blanksMax = BLANKS_MAX): string {
  return lines(text)
    .replace(RUNS, (run) => folded(run, blanksMax))
    .replace(IN_EXACT, (character) => `⟨${spelled(character)}⟩`);
}

/** A row of what shows nothing: its line breaks are counted where they are many, and so are the blanks of each line. */
function folded(run: string, blanksMax: number): string {
  const parts = run.split("\n");
  const breaks = parts.length - 1;
  const few = (blanks: string): string => ([...blanks].length > blanksMax ? counted(blanks) : blanks);
  if (breaks <= BREAKS_MAX) return parts.map(few).join("\n");
  return `\n⟨⏎×${breaks}⟩\n${few(parts.at(-1) ?? "")}`;
}

/** A name on one line, exactly. */
export function exactName(text: string): string {
  return exact(text).replaceAll("\t", "⟨U+0009⟩").replaceAll("\n", "⟨U+000A⟩");
}

/** Blanks of one kind are named; of several kinds only their number is. */
function counted(run: string): string {
  const all = [...run];
  const [first = ""] = all;
  const one = all.every((character) => character === first);
  const name = !one ? "␣" : first === " " ? "␠" : first === "\t" ? "␉" : spelled(first);
  return `⟨${name}×${all.length}⟩`;
}
