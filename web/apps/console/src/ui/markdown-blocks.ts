// Markdown as blocks: what agents really write, and no HTML. Every nesting and every length has a limit.

/** A block of a text. */
export type BlockNode =
  | { kind: "heading"; level: number; text: string }
  | { kind: "paragraph"; text: string }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: { done: boolean | null; blocks: BlockNode[] }[] }
  | { kind: "quote"; blocks: BlockNode[] }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "rule" };

/** How much of a text is read as Markdown; the rest is left out, and said to be. */
export const MARKDOWN_CHARS_MAX = 100_000;
const LINES_MAX = 4_000;
const DEPTH_MAX = 5;
const COLUMNS_MAX = 24;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}(?:-[ \t]*){3,}$|^ {0,3}(?:\*[ \t]*){3,}$|^ {0,3}(?:_[ \t]*){3,}$/;
const ITEM = /^( {0,9})([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
const DELIMITER_CELL = /^\s*:?-+:?\s*$/;

/** The blocks of a text. */
export function parseBlocks(text: string): BlockNode[] {
  const lines = text
    .slice(0, MARKDOWN_CHARS_MAX)
    .replaceAll("\t", "    ")
    .split(/\r\n?|\n/, LINES_MAX);
  return blocksOf(lines, 0);
}

function blocksOf(lines: readonly string[], depth: number): BlockNode[] {
  const blocks: BlockNode[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines: readonly string[], at: number, depth: number): [BlockNode, number] {
  const line = lines[at] ?? "";
  const fence = FENCE.exec(line);
  if (fence !== null) return codeAt(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const text = (heading[2] ?? "").replace(/ #{1,6}$/, "").trim();
    return [{ kind: "heading", level: heading[1]?.length ?? 1, text }, at + 1];
  }
  if (isRule(line)) return [{ kind: "rule" }, at + 1];
  if (depth < DEPTH_MAX && line.trimStart().startsWith(">")) return quoteAt(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return listAt(lines, at, depth);
  return tableAt(lines, at) ?? paragraphAt(lines, at, depth);
}

/** Rules are short: a long line of dashes would make the pattern work for nothing. */
function isRule(line: string): boolean {
  return line.length <= 120 && RULE.test(line);
}

function codeAt(lines: readonly string[], at: number, fence: RegExpExecArray): [BlockNode, number] {
  const marker = fence[1] ?? "```";
  let end = at + 1;
  while (end < lines.length && !closes(lines[end] ?? "", marker)) end += 1;
  return [{ kind: "code", language: fence[2] ?? "", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function closes(line: string, marker: string): boolean {
  const trimmed = line.trim();
  return trimmed.startsWith(marker) && trimmed === (marker[0] ?? "`").repeat(trimmed.length);
}

function quoteAt(lines: readonly string[], at: number, depth: number): [BlockNode, number] {
  let end = at;
  while (end < lines.length && lines[end]?.trimStart().startsWith(">")) end += 1;
  const inner = lines.slice(at, end).map((line) => line.trimStart().replace(/^> ?/, ""));
  return [{ kind: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

function listAt(lines: readonly string[], at: number, depth: number): [BlockNode, number] {
  const first = ITEM.exec(lines[at] ?? "");
  const ordered = /\d/.test(first?.[2] ?? "");
  const base = first?.[1]?.length ?? 0;
  const items: { done: boolean | null; blocks: BlockNode[] }[] = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end] ?? "");
    if (item === null || isRule(lines[end] ?? "") || (item[1]?.length ?? 0) > base + 1 || (item[1]?.length ?? 0) < base) break;
    if (/\d/.test(item[2] ?? "") !== ordered) break;
    const next = itemEnd(lines, end, base);
    items.push(itemOf(lines.slice(end, next), item, depth));
    end = next;
  }
  return [{ kind: "list", ordered, start: ordered ? Number.parseInt(first?.[2] ?? "1", 10) : 1, items }, Math.max(end, at + 1)];
}

/** Where the next item, or what follows the list, begins. */
function itemEnd(lines: readonly string[], at: number, base: number): number {
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end] ?? "";
    const indent = line.length - line.trimStart().length;
    if (line.trim() === "") {
      const following = lines[end + 1] ?? "";
      if (following.trim() === "" || following.length - following.trimStart().length <= base)
        return ITEM.test(following) ? end + 1 : end;
    } else if (
      indent <= base + 1 &&
      (ITEM.test(line) || HEADING.test(line) || FENCE.test(line) || lines[end - 1]?.trim() === "")
    ) {
      return end;
    }
    end += 1;
  }
  return end;
}

function itemOf(lines: readonly string[], item: RegExpExecArray, depth: number): { done: boolean | null; blocks: BlockNode[] } {
  const task = /^\[([ xX])\]\s+/.exec(item[3] ?? "");
  const head = (item[3] ?? "").slice(task?.[0].length ?? 0);
  const indent = (item[1]?.length ?? 0) + (item[2]?.length ?? 1) + 1;
  const rest = lines.slice(1).map((line) => line.slice(Math.min(indent, line.length - line.trimStart().length)));
  return { done: task === null ? null : task[1] !== " ", blocks: blocksOf([head, ...rest], depth + 1) };
}

function tableAt(lines: readonly string[], at: number): [BlockNode, number] | undefined {
  const head = cells(lines[at] ?? "");
  const delimiter = cells(lines[at + 1] ?? "");
  if (head.length < 2 || delimiter.length !== head.length || !delimiter.every((cell) => DELIMITER_CELL.test(cell)))
    return undefined;
  const rows: string[][] = [];
  let end = at + 2;
  while (end < lines.length && lines[end]?.includes("|")) {
    const row = cells(lines[end] ?? "");
    rows.push(head.map((_, column) => row[column] ?? ""));
    end += 1;
  }
  return [{ kind: "table", head, rows }, end];
}

function cells(line: string): string[] {
  if (!line.includes("|")) return [];
  return line
    .trim()
    .replace(/^\|/, "")
    .replace(/\|$/, "")
    .split("|", COLUMNS_MAX)
    .map((cell) => cell.trim());
}

function paragraphAt(lines: readonly string[], at: number, depth: number): [BlockNode, number] {
  let end = at + 1;
  while (end < lines.length && !begins(lines, end, depth)) end += 1;
  return [
    {
      kind: "paragraph",
      text: lines
        .slice(at, end)
        .map((line) => line.trim())
        .join("\n"),
    },
    end,
  ];
}

/** Whether a line ends the paragraph before it. */
function begins(lines: readonly string[], at: number, depth: number): boolean {
  const line = lines[at] ?? "";
  if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || isRule(line)) return true;
  return depth < DEPTH_MAX && (ITEM.test(line) || line.trimStart().startsWith(">"));
}
