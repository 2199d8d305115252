// The lines of a hunk as a table, unified or side by side. Long hunks are drawn in blocks.
import { memo, useMemo, type ReactNode } from "react";
import { t } from "../../i18n";
import { exact, Icon } from "../../ui";
import { placeOf } from "./comments";
import { Lazy } from "./lazy";
import type { Line } from "./model";
import { splitRows, unifiedRows, type Cell, type SplitRow } from "./rows";
import type { Piece } from "./words";

/** How lines stand: one below the other, or side by side. */
export type Layout = "unified" | "split";

/** So many lines are drawn together. */
const BLOCK_LINES = 120;
/** So many blanks of a line are shown as they are: code is indented. */
export const INDENT_MAX = 64;
/** The height of a line that does not wrap. */
export const LINE_PX = 20;

/** What the lines of a hunk take. */
export interface LinesProps {
  lines: readonly Line[];
  layout: Layout;
  /** Left out: it keeps its text and loses its colour. */
  out?: boolean;
  label: string;
  /** What stands below a line, such as comments. */
  below?: (line: Line) => ReactNode;
  /** Grows when what stands below lines changes. */
  belowRev?: number;
  onComment?: ((line: Line) => void) | undefined;
}

/** The lines of a hunk. */
export const Lines = memo(function Lines({ lines, layout, out = false, label, below, onComment }: LinesProps) {
  const unified = useMemo(() => (layout === "unified" ? blocks(unifiedRows(lines)) : []), [lines, layout]);
  const split = useMemo(() => (layout === "split" ? blocks(splitRows(lines)) : []), [lines, layout]);
  const count = Math.max(unified.length, split.length);
  const table = (index: number): ReactNode =>
    layout === "unified" ? (
      <Table out={out} label={label} layout={layout}>
        {(unified[index] ?? []).map((cell, row) => (
          <UnifiedRow key={row} cell={cell} below={below?.(cell.line)} onComment={onComment} />
        ))}
      </Table>
    ) : (
      <Table out={out} label={label} layout={layout}>
        {(split[index] ?? []).map((pair, row) => (
          <Pair key={row} pair={pair} below={below} onComment={onComment} />
        ))}
      </Table>
    );
  if (count <= 1) return table(0);
  const size = (index: number): number => (layout === "unified" ? unified[index] : split[index])?.length ?? 0;
  return Array.from({ length: count }, (_, index) => (
    <Lazy key={index} height={size(index) * LINE_PX}>
      {() => table(index)}
    </Lazy>
  ));
});

function blocks<T>(rows: readonly T[]): T[][] {
  const result: T[][] = [];
  for (let at = 0; at < rows.length; at += BLOCK_LINES) result.push(rows.slice(at, at + BLOCK_LINES));
  return result;
}

function Table({ out, label, layout, children }: { out: boolean; label: string; layout: Layout; children: ReactNode }) {
  return (
    <table className={`dtab dtab--${layout}${out ? " is-out" : ""}`} aria-label={label}>
      <colgroup>
        <col className="dtab__n" />
        {layout === "unified" ? <col className="dtab__n" /> : <col />}
        {layout === "unified" ? <col className="dtab__g" /> : <col className="dtab__n" />}
        <col />
      </colgroup>
      <tbody>{children}</tbody>
    </table>
  );
}

const SIGNS: Record<string, string> = { added: "+", removed: "−" };
const rowClass = (kind: string | undefined): string => (kind === "added" ? "a" : kind === "removed" ? "d" : "");

function UnifiedRow({ cell, below, onComment }: { cell: Cell; below: ReactNode; onComment: LinesProps["onComment"] }) {
  const { line } = cell;
  return (
    <>
      <tr className={rowClass(line.kind)}>
        <td className="n">{line.old ?? ""}</td>
        <td className="n">{line.new ?? ""}</td>
        <td className="g">{SIGNS[line.kind] ?? ""}</td>
        <td className="c">
          <CommentButton line={line} onComment={onComment} />
          <Text cell={cell} />
        </td>
      </tr>
      {below && (
        <tr>
          <td className="cc" colSpan={4}>
            {below}
          </td>
        </tr>
      )}
    </>
  );
}

function Pair({ pair: { left, right }, below, onComment }: {
  pair: SplitRow;
  below: LinesProps["below"];
  onComment: LinesProps["onComment"];
}) {
  const leftBelow = left && left !== right ? below?.(left.line) : null;
  const rightBelow = right ? below?.(right.line) : null;
  const kind = (cell: Cell | null): string => (cell ? rowClass(cell.line.kind) : "void");
  return (
    <>
      <tr>
        <td className={`n ${kind(left)}`}>{left?.line.old ?? ""}</td>
        <td className={`c ${kind(left)}`}>
          {left && left !== right && <CommentButton line={left.line} onComment={onComment} />}
          {left && <Text cell={left} />}
        </td>
        <td className={`n ${kind(right)}`}>{right?.line.new ?? ""}</td>
        <td className={`c ${kind(right)}`}>
          {right && <CommentButton line={right.line} onComment={onComment} />}
          {right && <Text cell={right} />}
        </td>
      </tr>
      {(leftBelow || rightBelow) && (
        <tr>
          <td className="cc" colSpan={4}>
            {leftBelow}
            {rightBelow}
          </td>
        </tr>
      )}
    </>
  );
}

function CommentButton({ line, onComment }: { line: Line; onComment: LinesProps["onComment"] }) {
  const place = placeOf(line);
  if (!onComment || !place) return null;
  return (
    <button
      type="button"
      className="dtab__add"
      aria-label={t("diff.commentOn", { line: place.line })}
      title={t("diff.comment")}
      onClick={() => onComment(line)}
    >
      <Icon name="plus" small />
    </button>
  );
}

function Text({ cell }: { cell: Cell }) {
  if (cell.pieces === null) return <>{exact(cell.line.text, INDENT_MAX)}</>;
  return cell.pieces.map((piece, index) => <Words key={index} piece={piece} kind={cell.line.kind} />);
}

function Words({ piece, kind }: { piece: Piece; kind: string }) {
  const text = exact(piece.text, INDENT_MAX);
  if (!piece.changed) return <>{text}</>;
  return kind === "removed" ? <del>{text}</del> : <ins>{text}</ins>;
}
