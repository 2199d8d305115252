// What each kind of row shows.
import type { Row } from "@runyard/react";
import { ApprovalRow, JudgedRow } from "./approval";
import { ArtifactRow, DiffRow, PatchRow, PreviewRow } from "./changes";
import { MessageRow, PlanRow, ReasoningRow } from "./message";
import {
  CancellingRow,
  CommandRow,
  DegradedRow,
  GapRow,
  HeardRow,
  LifecycleRow,
  MissingRow,
  RuntimeRow,
  SecretsRow,
  ThreadRow,
  UnknownRow,
} from "./notes";
import { ReadRow } from "./read";
import { ToolRow } from "./tool";

/** What every kind of row is given. */
export interface ContentProps<K extends Row["kind"] = Row["kind"]> {
  runId: string;
  row: Extract<Row, { kind: K }>;
  open: boolean;
  onToggle: (key: string) => void;
}

/** The content of a row, by its kind. */
export function RowContent({ row, ...rest }: ContentProps) {
  switch (row.kind) {
    case "turn":
      return null;
    case "message":
      return <MessageRow row={row} {...rest} />;
    case "reasoning":
      return <ReasoningRow row={row} {...rest} />;
    case "plan":
      return <PlanRow row={row} {...rest} />;
    case "tool":
      return <ToolRow row={row} {...rest} />;
    case "read":
      return <ReadRow row={row} {...rest} />;
    case "patch":
      return <PatchRow row={row} {...rest} />;
    case "diff":
      return <DiffRow row={row} {...rest} />;
    case "approval":
      return <ApprovalRow row={row} {...rest} />;
    case "judged":
      return <JudgedRow row={row} {...rest} />;
    case "command":
      return <CommandRow row={row} {...rest} />;
    case "heard":
      return <HeardRow />;
    case "cancelling":
      return <CancellingRow row={row} {...rest} />;
    case "artifact":
      return <ArtifactRow row={row} {...rest} />;
    case "preview":
      return <PreviewRow row={row} {...rest} />;
    case "lifecycle":
      return <LifecycleRow row={row} {...rest} />;
    case "runtime":
      return <RuntimeRow row={row} {...rest} />;
    case "secrets":
      return <SecretsRow row={row} {...rest} />;
    case "thread":
      return <ThreadRow />;
    case "degraded":
      return <DegradedRow row={row} {...rest} />;
    case "gap":
      return <GapRow row={row} {...rest} />;
    case "missing":
      return <MissingRow row={row} {...rest} />;
    case "unknown":
      return <UnknownRow row={row} {...rest} />;
  }
}
