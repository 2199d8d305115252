// Text as it is: code, blocks, pairs, keys.
import type { ReactNode } from "react";

/** Code inside a line. */
export function Code({ children }: { children: ReactNode }) {
  return <code>{children}</code>;
}

/** A sentence of ours in which what stands between backticks is code. */
export function Sentence({ text }: { text: string }) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

/** A block of text that keeps its lines and can be scrolled by keyboard. */
export function Block({ children, command = false, wrap = false, label, className = "" }: {
  children: ReactNode;
  command?: boolean;
  wrap?: boolean;
  label?: string;
  className?: string;
}) {
  return (
    <pre
      className={`block${command ? " block--cmd" : ""}${wrap ? " block--wrap" : ""} ${className}`}
      tabIndex={0}
      role="group"
      aria-label={label}
    >
      {command && <span className="p">$ </span>}
      {children}
    </pre>
  );
}

/** Names and what they are. What is undefined is left out. */
export function KeyValue({ pairs, wide = false }: { pairs: readonly (readonly [name: string, value: ReactNode])[]; wide?: boolean }) {
  return (
    <dl className={`kv${wide ? " kv--wide" : ""}`}>
      {pairs.map(([name, value]) => value !== undefined && value !== null && <Pair key={name} name={name} value={value} />)}
    </dl>
  );
}

function Pair({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

/** A key of the keyboard. */
export function Kbd({ children }: { children: ReactNode }) {
  return <kbd aria-hidden="true">{children}</kbd>;
}

// Controls, invisible and direction-changing characters: what they would hide is what a decision is about.
const HIDDEN = new RegExp(
  [
    String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f`,
    String.raw`\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]`,
  ].join(""),
  "gu",
);

/** The text with every hidden character spelled out, as in `⟨U+202E⟩`. Line breaks and tabs stay. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return `⟨U+${point.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
