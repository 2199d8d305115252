// Groups events into the rows of a timeline: what belongs together is one row, whatever came in between.

import type { CommandReceived, ToolCall, ToolResult, TurnOutcome } from "../generated/events.js";
import type { RunState } from "../generated/lifecycle.js";
import type { ApprovalEntry, OutputPiece, RowContent, RowFrame, Rows, RunEvent } from "../view.js";
import { isRecord } from "../envelope.js";
import { GrowingText } from "./bytes.js";
import { append, callOf, isQuiet, join, single } from "./content.js";
import type { KnownEvent } from "./known.js";
import { RowsBuilder } from "./rows.js";
import { shareText } from "./share.js";
import { isTerminal } from "./state.js";

/** A row that may still change. */
interface Draft extends RowFrame {
  index: number;
  events: RunEvent[];
  content: () => RowContent;
}

interface OpenMessage {
  draft: Draft;
  text: GrowingText;
}

interface OpenWord {
  draft: Draft;
  command: CommandReceived;
}

interface OpenTool {
  draft: Draft;
  call: ToolCall;
  streams: Map<string, GrowingText>;
  output: OutputPiece[];
  result: ToolResult | null;
  approvalId: string | null;
}

/** So many rows lie between two reads at the most: each is judged, and the runtime says a word or two. */
const BETWEEN_READS_MAX = 8;

/** The rows of one run. */
export class Timeline {
  readonly #rows = new RowsBuilder();
  readonly #dirty = new Set<Draft>();
  readonly #messages = new Map<string, OpenMessage>();
  readonly #tools = new Map<string, OpenTool>();
  readonly #commands = new Map<string, CommandReceived>();
  /** Words that are on their way to the agent, by the command. */
  readonly #unheard = new Map<string, OpenWord>();
  /** The row that shows an approval, by its id. */
  readonly #approvalRows = new Map<string, Draft>();
  /** Approvals that have a row of their own, by the call that they may belong to. */
  readonly #asked = new Map<string, { draft: Draft; approvalId: string }>();
  /** Calls that read a file and have no result yet, by the file. */
  readonly #reading = new Map<string, OpenTool>();
  /** The last rows, the newest at the end. */
  readonly #recent: Draft[] = [];
  /** Time that passed before the event that is shown next; it has a row unless it passed inside of one. */
  #passed: { frame: Omit<RowFrame, "events">; content: RowContent } | null = null;
  /** The event that ended the last gap that has a row. */
  #gapEnd = 0;
  #turns = 0;
  #turn: { draft: Draft; outcome: TurnOutcome | null } | null = null;

  constructor(private readonly approval: (id: string) => ApprovalEntry) {}

  /** The rows as they are now. */
  rows(): Rows {
    for (const draft of this.#dirty) {
      const { key, first, last, at, endAt, events, index } = draft;
      this.#rows.set(index, { key, first, last, at, endAt, events: events.slice(), ...draft.content() });
    }
    this.#dirty.clear();
    return this.#rows.list();
  }

  /** Says that nothing happened for a while before an event, which is shown next. */
  gap(since: { sequence: number; at: string }, event: RunEvent, ms: number, waiting: "person" | "agent"): void {
    const places = { first: since.sequence, last: event.sequence, at: since.at, endAt: event.timestamp };
    this.#passed = { frame: { key: `gap-${event.sequence}`, ...places }, content: { kind: "gap", ms, waiting } };
  }

  /** Gives the time that passed a row, before whatever comes next. */
  #drawGap(): void {
    const passed = this.#passed;
    if (passed === null) return;
    this.#passed = null;
    this.#gapEnd = passed.frame.last;
    this.#begin(passed.frame, [], () => passed.content);
  }

  /** Shows that events are missing. */
  missing(from: number, to: number, at: string): void {
    const frame = { key: `missing-${from}`, first: from, last: to, at, endAt: at };
    const draft = this.#begin(frame, [], () => ({ kind: "missing", from, to }));
    this.#rows.place(from, draft.index);
  }

  /** Shows what an event says by itself: one that this version cannot read, or does not believe. */
  note(event: RunEvent, content: RowContent): void {
    this.#row(event, () => content);
  }

  /** Shows an event that is legal. `state` is where the run stands with it. */
  show(event: KnownEvent, state: RunState | "unknown"): void {
    // What was said into a turn is not said any more after it.
    const over = event.type === "run.turn.started" || event.type === "run.turn.ended" || isTerminal(state);
    if (over) for (const commandId of this.#unheard.keys()) this.#settle(commandId);
    switch (event.type) {
      case "run.message.delta":
      case "run.message.completed":
        return this.#message(event);
      case "run.tool.call":
      case "run.tool.output":
      case "run.tool.result":
        return this.#tool(event);
      case "run.approval.requested":
        return this.#ask(event);
      case "run.approval.resolved":
      case "run.approval.snoozed":
      case "run.approval.used":
        return this.#answer(event);
      case "run.turn.started":
      case "run.turn.ended":
        return this.#turned(event);
      case "run.file.read":
      case "run.plan.updated":
      case "run.reasoning":
      case "runtime.status":
        return this.#joined(event);
      case "run.thread.recorded":
        return this.#beside(event, state);
      case "run.command.received":
        return this.#commanded(event);
      case "run.command.heard":
        return this.#heard(event, state);
      default:
        return this.note(event, single(event, state));
    }
  }

  #begin(frame: Omit<RowFrame, "events">, events: RunEvent[], content: () => RowContent): Draft {
    this.#drawGap();
    const draft = { ...frame, events, content, index: this.#rows.reserve() };
    this.#dirty.add(draft);
    this.#recent.push(draft);
    if (this.#recent.length > BETWEEN_READS_MAX) this.#recent.shift();
    return draft;
  }

  #row(event: RunEvent, content: () => RowContent): Draft {
    const { sequence, timestamp } = event;
    const frame = { key: `row-${sequence}`, first: sequence, last: sequence, at: timestamp, endAt: timestamp };
    const draft = this.#begin(frame, [event], content);
    this.#rows.place(sequence, draft.index);
    return draft;
  }

  #add(draft: Draft, event: RunEvent): void {
    // What passed inside of the last row is told by how long that row took.
    if (this.#passed !== null && draft === this.#recent.at(-1) && lasts(draft)) this.#passed = null;
    this.#drawGap();
    draft.events.push(event);
    draft.last = event.sequence;
    draft.endAt = event.timestamp;
    this.#rows.place(event.sequence, draft.index);
    this.#dirty.add(draft);
  }

  /** Puts an event that shows nothing of its own to the row before it, unless time passed in between. */
  #beside(event: KnownEvent, state: RunState | "unknown"): void {
    const last = this.#recent.at(-1);
    if (last === undefined || this.#passed !== null) return this.note(event, single(event, state));
    this.#add(last, event);
  }

  #commanded(event: Extract<KnownEvent, { type: "run.command.received" }>): void {
    const command = event.payload;
    this.#commands.set(command.commandId, command);
    if (command.untilHeard !== true) return this.note(event, { kind: "command", command });
    const draft = this.#row(event, () => ({ kind: "command", command, unheard: true }));
    this.#unheard.set(command.commandId, { draft, command });
  }

  #heard(event: Extract<KnownEvent, { type: "run.command.heard" }>, state: RunState | "unknown"): void {
    const draft = this.#settle(event.payload.commandId);
    if (draft === undefined) return this.#beside(event, state);
    this.#add(draft, event);
  }

  /** Lets a word be on its way no longer; gives its row. */
  #settle(commandId: string): Draft | undefined {
    const word = this.#unheard.get(commandId);
    if (word === undefined) return undefined;
    const { draft, command } = word;
    this.#unheard.delete(commandId);
    draft.content = () => ({ kind: "command", command });
    this.#dirty.add(draft);
    return draft;
  }

  #message(event: Extract<KnownEvent, { type: "run.message.delta" | "run.message.completed" }>): void {
    const { item } = event.payload;
    let open = this.#messages.get(item);
    if (open === undefined) {
      const text = new GrowingText();
      const draft = this.#row(event, () => ({ kind: "message", item, text: text.text, complete: false }));
      open = { draft, text };
      this.#messages.set(item, open);
    } else {
      this.#add(open.draft, event);
    }
    if (event.type === "run.message.delta") {
      open.text.add(event.payload.text, event.payload.offset);
      return;
    }
    this.#messages.delete(item);
    const { text, brokeOff } = event.payload;
    if (brokeOff === true) {
      const heard = open.text.text;
      open.draft.content = () => ({ kind: "message", item, text: heard, complete: true, brokeOff: text });
      return;
    }
    open.draft.content = () => ({ kind: "message", item, text, complete: true });
    shareText(open.draft.events, text);
  }

  #tool(event: Extract<KnownEvent, { type: "run.tool.call" | "run.tool.output" | "run.tool.result" }>): void {
    const { call } = event.payload;
    const open = event.type === "run.tool.call" ? undefined : this.#tools.get(call);
    if (open !== undefined) this.#add(open.draft, event);
    const begun = open ?? this.#beginTool(event);
    const reads = readBy(begun.call);
    if (event.type === "run.tool.call" && reads !== undefined) this.#reading.set(reads, begun);
    if (event.type === "run.tool.result") {
      begun.result = event.payload;
      if (reads !== undefined) this.#reading.delete(reads);
    }
    if (event.type === "run.tool.output") {
      const { stream, text, offset, omitted = 0, logPath } = event.payload;
      const written = begun.streams.get(stream) ?? new GrowingText();
      begun.streams.set(stream, written);
      const piece = { stream, text: written.add(text, offset, omitted), omitted };
      append(begun.output, logPath === undefined ? piece : { ...piece, logPath });
    }
  }

  #beginTool(event: Extract<KnownEvent, { type: "run.tool.call" | "run.tool.output" | "run.tool.result" }>): OpenTool {
    const name = event.payload.call;
    const call = event.type === "run.tool.call" ? event.payload : { call: name, tool: "", summary: "", idempotent: false };
    const asked = this.#asked.get(name);
    this.#asked.delete(name);
    const content = (): RowContent => {
      const { call, output, result, approvalId } = tool;
      const approval = approvalId === null ? {} : { approval: this.approval(approvalId) };
      return { kind: "tool", call, output: output.map((piece) => ({ ...piece })), result, ...approval };
    };
    const draft = asked?.draft ?? this.#row(event, content);
    const approvalId = asked?.approvalId ?? null;
    const tool: OpenTool = { draft, call, streams: new Map(), output: [], result: null, approvalId };
    if (asked !== undefined) {
      draft.content = content;
      this.#add(draft, event);
    }
    this.#tools.set(name, tool);
    return tool;
  }

  #ask(event: Extract<KnownEvent, { type: "run.approval.requested" }>): void {
    const { approvalId, key } = event.payload;
    const name = callOf(key);
    const tool = this.#tools.get(key) ?? this.#tools.get(name);
    if (tool !== undefined && tool.result === null && tool.approvalId === null) {
      tool.approvalId = approvalId;
      this.#add(tool.draft, event);
      this.#approvalRows.set(approvalId, tool.draft);
      return;
    }
    const draft = this.#row(event, () => ({ kind: "approval", approval: this.approval(approvalId) }));
    this.#approvalRows.set(approvalId, draft);
    if (tool === undefined) this.#asked.set(name, { draft, approvalId });
  }

  #answer(event: Extract<KnownEvent, { payload: { approvalId: string } }>): void {
    const { approvalId } = event.payload;
    const draft = this.#approvalRows.get(approvalId);
    if (draft === undefined) return this.note(event, { kind: "unknown", type: event.type });
    this.#drawGap();
    const waited = event.type === "run.approval.resolved" && this.#gapEnd > this.approval(approvalId).sequence;
    if (waited) this.#decideBelow(draft, event);
    else this.#add(draft, event);
  }

  /** A decision that was long waited for stands below that time, and so does what it led to; above it stays the question. */
  #decideBelow(asked: Draft, event: Extract<KnownEvent, { payload: { approvalId: string } }>): void {
    const { approvalId } = event.payload;
    const decided = this.#row(event, asked.content);
    asked.content = () => ({ kind: "approval", approval: this.approval(approvalId), asked: true });
    this.#dirty.add(asked);
    this.#approvalRows.set(approvalId, decided);
    for (const tool of this.#tools.values()) if (tool.draft === asked) tool.draft = decided;
    for (const waiting of this.#asked.values()) if (waiting.draft === asked) waiting.draft = decided;
  }

  #turned(event: Extract<KnownEvent, { type: "run.turn.started" | "run.turn.ended" }>): void {
    const turn = this.#turn;
    if (event.type === "run.turn.ended" && turn !== null && turn.outcome === null) {
      turn.outcome = event.payload.outcome;
      return this.#add(turn.draft, event);
    }
    if (event.type === "run.turn.started") this.#turns += 1;
    const number = this.#turns;
    const command = event.type === "run.turn.started" ? this.#commands.get(event.payload.commandId ?? "") : undefined;
    const content = (): RowContent => {
      const { outcome } = begun;
      return { kind: "turn", number, ...(command === undefined ? {} : { command }), ...(outcome === null ? {} : { outcome }) };
    };
    const outcome = event.type === "run.turn.ended" ? event.payload.outcome : null;
    const begun = { draft: this.#row(event, content), outcome };
    this.#turn = begun;
  }

  /** Several of the same kind after each other are one row. */
  #joined(event: Extract<KnownEvent, { type: "run.file.read" | "run.plan.updated" | "run.reasoning" | "runtime.status" }>): void {
    const call = event.type === "run.file.read" ? this.#reading.get(event.payload.path) : undefined;
    // The row of the call says already which file it reads.
    if (call !== undefined) return this.#add(call.draft, event);
    this.#drawGap();
    const last = event.type === "run.file.read" ? this.#lastLoud() : this.#recent.at(-1);
    const joined = last === undefined ? null : join(last.content(), event);
    if (last === undefined || joined === null) return this.note(event, join(null, event) ?? { kind: "unknown", type: event.type });
    last.content = () => joined;
    this.#add(last, event);
  }

  /** The last row that is more than the runtime's word about itself: reads on both sides of such a word belong together. */
  #lastLoud(): Draft | undefined {
    return this.#recent.findLast((draft) => !isQuiet(draft.content()));
  }
}

/** The file that a call reads, where it does nothing else. */
function readBy({ tool, arguments: given }: ToolCall): string | undefined {
  return tool === "read" && isRecord(given) && typeof given["path"] === "string" ? given["path"] : undefined;
}

/** Whether a row says itself how long it took. */
function lasts(draft: Draft): boolean {
  const { kind } = draft.content();
  return kind === "tool" || kind === "message";
}
