// A part of the page before a hub that says what a test wants, with a real run's log as far as a test wants it.
import { createClient, foldRun, RunyardProvider, type Client, type RunEvent, type RunView } from "@runyard/react";
import { act, render } from "@testing-library/react";
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { readFileSync } from "node:fs";
import type { ReactNode } from "react";
import type { ShownRun } from "../../src/pages/run/run-context";

/** What the hub answers to an action: data, or the code of a refusal. */
export type Answer = { data: unknown } | { code: string };
/** The answers by action. One that is not there is never answered. */
export type Answers = Record<string, ((input: Record<string, unknown>) => Answer) | undefined>;

const meta = { action: "x", invocationId: "inv_1", surface: "react", durationMs: 1 };
const around = { artifacts: [], logs: [], meta };
const may = ["runs.read", "runs.write", "approvals.resolve", "policy.write"];
const session = { actor: { id: "ada", kind: "person" }, permissions: may, name: "hub", version: "1", hub: true };
const pending = new Promise<Response>(() => undefined);

function envelope(answer: Answer): Response {
  if ("data" in answer) return Response.json({ ok: true, data: answer.data, ...around });
  const error = { code: answer.code, message: "no", issues: [], retryable: false };
  return Response.json({ ok: false, error, ...around }, { status: 409 });
}

/** A call that came to the hub. */
export interface Call {
  action: string;
  input: Record<string, unknown>;
  key: string | undefined;
}

/** A hub that answers as it is told to, and remembers what it was asked. */
export function hub(answers: Answers, stream: readonly RunEvent[] = []) {
  const calls: Call[] = [];
  const fetched: typeof fetch = async (url, init) => {
    const path = String(url);
    if (path.endsWith("/api/v1/session")) return envelope({ data: session });
    if (/\/runs\/.*\/stream/.test(path)) return held(stream);
    const action = /actions\/(\w+)\/invoke/.exec(path)?.[1] ?? "";
    const { input, idempotencyKey: key } = JSON.parse(typeof init?.body === "string" ? init.body : "{}");
    calls.push({ action, input, key });
    const answer = answers[action];
    return answer === undefined ? pending : envelope(answer(input));
  };
  return { calls, client: createClient({ fetch: fetched }) };
}

/** A stream that brings these and then nothing more. */
function held(events: readonly RunEvent[]): Response {
  const text = events.map((event) => `id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(text)) });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Drawing a page takes its time on a busy machine. */
export const SCENE_MS_MAX = 60_000;

/** Gives what is drawn this hub. */
export const before = (client: Client) => ({ children }: { children: ReactNode }) => (
  <RunyardProvider client={client}>{children}</RunyardProvider>
);

/** Draws a part of the page. */
export async function show(client: Client, part: ReactNode): Promise<void> {
  const routeTree = createRootRoute({ component: () => part });
  const router = createRouter({ routeTree, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router} />, { wrapper: before(client) });
  await settle();
}

/** Lets everything be answered that is answered at all. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await act(() => new Promise<void>((resolve) => setTimeout(resolve, 0)));
}

/** The log of a real run up to its n-th event of a type, or whole. What is open stays open however late a test runs. */
export function log(name: string, until?: { type: string; nth: number }): RunEvent[] {
  const text = readFileSync(`${import.meta.dirname}/../../../../fixtures/${name}.ndjson`, "utf8");
  const all = text.trim().split("\n").map((line): RunEvent => JSON.parse(line.replace(/"expiresAt":"\d+/, '"expiresAt":"2999')));
  const last = until === undefined ? undefined : all.filter((event) => event.type === until.type)[until.nth - 1];
  return last === undefined ? all : all.slice(0, last.sequence);
}

/** What a page has of a run. */
export function shownRun(events: readonly RunEvent[]): ShownRun & { view: RunView } {
  const id = events[0]?.runId ?? "";
  const view = foldRun(events);
  return { id, view, snapshot: { id, link: { kind: "live" }, rev: 1, view }, reading: null };
}

/** An approval of a run, as the hub tells of it. */
export function told(view: RunView, nth: number, more: Record<string, unknown> = {}): Record<string, unknown> {
  const entry = view.approvals[nth];
  if (entry === undefined) throw new Error("It asked for nothing.");
  const { approvalId, request, redacted, digest, risk, reason, workspace, actor, expiresAt } = entry;
  return {
    id: approvalId, runId: "runId" in actor ? actor.runId : "", state: "open", title: "", request, redacted, digest, risk, reason, workspace,
    agentId: actor.id, expiresAt, ...more,
  };
}
