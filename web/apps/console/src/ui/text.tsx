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
