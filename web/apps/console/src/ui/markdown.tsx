// Text of agents and people, read as Markdown. It is never trusted: no HTML, no remote image, no address but http and https.
import { memo, useMemo, type ReactNode } from "react";
import { t, useLanguage } from "../i18n";
import { MARKDOWN_CHARS_MAX, parseBlocks, type BlockNode } from "./markdown-blocks";
import { parseInline, plainText, type Inline } from "./markdown-inline";
import { prose, visible } from "./visible";

const UNBROKEN_CHARS_MAX = 28;

/** A text as Markdown. */
export const Markdown = memo(function Markdown({ text, className = "" }: { text: string; className?: string }) {
  useLanguage();
  const blocks = useMemo(() => parseBlocks(text), [text]);
  const left = text.length - MARKDOWN_CHARS_MAX;
  return (
    <div className={`md ${className}`} dir="auto">
      {blocks.map((block, index) => (
        <MarkdownBlock key={index} block={block} />
      ))}
      {left > 0 && <p className="muted">{t("run.markdownCut", { count: left })}</p>}
    </div>
  );
});

const MarkdownBlock = memo(function MarkdownBlock({ block }: { block: BlockNode }) {
  switch (block.kind) {
    case "heading":
      // Headings of a message are not headings of the page: they must not disturb its outline.
      return <p className="md__h">{words(block.text)}</p>;
    case "paragraph":
      return <p>{words(block.text)}</p>;
    case "code":
      return (
        <pre className="block" tabIndex={0} aria-label={block.language === "" ? t("run.codeBlock") : visible(block.language)}>
          {visible(block.text)}
        </pre>
      );
    case "quote":
      return <blockquote>{nested(block.blocks)}</blockquote>;
    case "rule":
      return <hr />;
    case "list":
      return <List block={block} />;
    case "table":
      return <Table block={block} />;
  }
});

function List({ block }: { block: BlockNode & { kind: "list" } }) {
  const items = block.items.map((item, index) => (
    <li key={index}>
      {item.done !== null && <span className="md__box">{item.done ? "☑ " : "☐ "}</span>}
      {tight(item.blocks)}
    </li>
  ));
  return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
}

/** An item that is one line needs no paragraph of its own. */
function tight(blocks: readonly BlockNode[]): ReactNode {
  const [first, ...rest] = blocks;
  if (first?.kind !== "paragraph") return nested(blocks);
  return (
    <>
      {words(first.text)}
      {nested(rest)}
    </>
  );
}

function nested(blocks: readonly BlockNode[]): ReactNode {
  return blocks.map((block, index) => <MarkdownBlock key={index} block={block} />);
}

function Table({ block }: { block: BlockNode & { kind: "table" } }) {
  return (
    <div className="md__table" tabIndex={0} role="group" aria-label={t("run.table")}>
      <table>
        <thead>
          <tr>
            {block.head.map((cell, index) => (
              <th key={index}>{words(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{words(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function words(text: string): ReactNode {
  return parseInline(text).map((node, index) => <Piece key={index} node={node} />);
}

function Piece({ node }: { node: Inline }): ReactNode {
  switch (node.kind) {
    case "text":
      return prose(node.text);
    case "code":
      // A flag such as `--profile` is not broken after its dashes.
      return <code className={node.text.length <= UNBROKEN_CHARS_MAX ? "short" : undefined}>{visible(node.text)}</code>;
    case "strong":
      return <strong>{pieces(node.children)}</strong>;
    case "em":
      return <em>{pieces(node.children)}</em>;
    case "del":
      return <del>{pieces(node.children)}</del>;
    case "link":
      return <SafeLink node={node} />;
    case "image":
      return (
        <span className="md__image">
          {t("run.image", { alt: node.alt === "" ? "—" : prose(node.alt), host: node.host === "" ? "—" : node.host })}
        </span>
      );
  }
}

function pieces(nodes: readonly Inline[]): ReactNode {
  return nodes.map((node, index) => <Piece key={index} node={node} />);
}

/** A link says where it leads unless its words do. */
function SafeLink({ node }: { node: Inline & { kind: "link" } }) {
  const says = plainText(node.children).includes(node.host);
  return (
    <>
      <a href={node.href} target="_blank" rel="noopener noreferrer">
        {pieces(node.children)}
      </a>
      {!says && <span className="muted"> ({node.host})</span>}
    </>
  );
}
