// The table of calls that every surface must answer alike (crates/testkit/vectors.json), for the surface `react`.
//
// Whoever runs it brings a server of the application that the table is about, and a session on it.

import { createClient, readJson, type AnyActions, type Client, type CallOptions, type Envelope } from "../src/index.js";

/** One call and the envelope that it must give; the columns are told in crates/testkit/src/vectors.rs. */
export interface Vector {
  name: string;
  action: string;
  input?: unknown;
  rawInput?: string;
  rawPayload?: string;
  options?: Record<string, unknown>;
  cancelled?: boolean;
  before?: { action: string; input: unknown; options?: Record<string, unknown> }[];
  expect: unknown;
  on?: Record<string, { because: string; expect?: unknown }>;
}

/** A browser's session on the application's server. */
export interface Session {
  baseUrl: string;
  pageKey: string;
  /** The cookie as it is sent; in a browser it is sent by itself. */
  cookie?: string;
  fetch?: typeof fetch;
}

/** A file that a cancelled action makes when it has begun. */
export interface Marker {
  path: string;
  made: () => Promise<void>;
}

/** Makes one call; by default the client does. */
export type Make = (
  client: Client<AnyActions>,
  action: string,
  input: unknown,
  options: CallOptions,
) => Promise<Envelope<unknown>>;

/** Stands in an input for a text that is put there as it is. */
const RAW = "$raw$";

/** The table, with its numbers as they are written. */
export function readVectors(text: string): Vector[] {
  const table = readJson(text);
  if (typeof table === "object" && table !== null && "vectors" in table && Array.isArray(table.vectors)) return table.vectors;
  throw new Error("This is no table of vectors.");
}

/** The envelope that the surface must give, or undefined where the vector is not run there. */
export function expectedOn(vector: Vector, surface: string): unknown {
  const different = Object.entries(vector.on ?? {}).find(([words]) => words.split(" ").includes(surface));
  return different === undefined ? vector.expect : different[1].expect;
}

/** Runs a vector, and says all that is not as the table says. */
export async function runVector(vector: Vector, session: Session, marker: Marker, make: Make = viaClient): Promise<string[]> {
  const expect = expectedOn(vector, "react");
  if (expect === undefined) return [];
  const client = createClient<AnyActions>({
    baseUrl: session.baseUrl,
    auth: { kind: "session", pageKey: () => session.pageKey },
    fetch: asBrowser(session, vector),
  });
  for (const { action, input, options } of vector.before ?? []) await client.call(action, input, options ?? {});
  const input = vector.rawInput === undefined ? expanded(vector.input, marker, named) : RAW;
  const options = asOptions(expanded(vector.options ?? {}, marker, named));
  const envelope = vector.cancelled
    ? await cancelled(client, vector.action, input, options, marker, make)
    : await make(client, vector.action, input, options);
  const found: string[] = [];
  compare("", whole(expanded(expect, marker, nested), vector.action, "react"), envelope, found);
  return found.map((what) => `${vector.name}: ${what}`);
}

const viaClient: Make = (client, action, input, options) => client.call(action, input, options);

/** The table holds wrong options, too, which no type allows. */
function asOptions(options: unknown): CallOptions {
  return options as CallOptions;
}

/** Cancels a call once it has begun, and gives the envelope that it ended with at the server. */
async function cancelled(
  client: Client<AnyActions>, action: string, input: unknown, options: CallOptions, marker: Marker, make: Make,
): Promise<unknown> {
  const abort = new AbortController();
  const calling = make(client, action, input, { ...options, signal: abort.signal });
  await marker.made();
  abort.abort();
  const here = await calling;
  if (here.ok || here.error.code !== "CANCELLED") return here;
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const kept = await client.call("last_envelope", { action });
    if (kept.ok && kept.data !== null) return kept.data;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return { ended: false };
}

/** Sends as a browser does from the application's own page, and puts texts that need not be JSON in their place. */
function asBrowser(session: Session, vector: Vector): typeof fetch {
  const send = session.fetch ?? ((input: Parameters<typeof fetch>[0], init?: RequestInit) => fetch(input, init));
  return (input, init) => {
    const headers = new Headers(init?.headers);
    if (session.cookie !== undefined) {
      headers.set("cookie", session.cookie);
      headers.set("origin", session.baseUrl);
    }
    const sent: RequestInit = { ...init, headers };
    if (typeof init?.body === "string") sent.body = raw(init.body, vector);
    return send(input, sent);
  };
}

function raw(body: string, vector: Vector): string {
  if (vector.rawPayload !== undefined) return vector.rawPayload;
  if (vector.rawInput !== undefined) return body.replace(`"${RAW}"`, () => vector.rawInput ?? "");
  return body.replace(/"\$deep:(\d+)\$"/g, (_, levels) => "[".repeat(Number(levels)) + "1" + "]".repeat(Number(levels)));
}

/** So many arrays inside each other. Some are too many for a script to write: they go out as a name, and are put in as a text. */
const named = (levels: number): unknown => `$deep:${levels}$`;
const nested = (levels: number): unknown => Array.from({ length: levels }).reduce((inner) => [inner], 1);

/** The value with what its placeholders stand for. */
function expanded(value: unknown, marker: Marker, deep: (levels: number) => unknown): unknown {
  if (value === "$marker") return marker.path;
  if (Array.isArray(value)) return value.map((item) => expanded(item, marker, deep));
  if (!isPlain(value)) return value;
  const entries = Object.entries(value);
  const [only] = entries.length === 1 ? entries : [];
  if (only?.[0] === "$deep") return deep(Number(only[1]));
  if (only?.[0] === "$text") return "x".repeat(Number(only[1]));
  return Object.fromEntries(entries.map(([key, one]) => [key, expanded(one, marker, deep)]));
}

/** What the table says, with what every envelope has. */
function whole(expect: unknown, action: string, surface: string): unknown {
  const { meta, logs, error, ...rest } = record(expect);
  const envelope = {
    artifacts: [],
    ...rest,
    logs: (Array.isArray(logs) ? logs : []).map((log) => ({ fields: {}, ...record(log), time: "$time" })),
    ...(error === undefined ? {} : { error: { issues: [], retryable: false, ...record(error) } }),
    meta: { action, invocationId: "$invocationId", surface, durationMs: "$durationMs", ...record(meta ?? {}) },
  };
  return withSurface(envelope, surface);
}

function withSurface(value: unknown, surface: string): unknown {
  if (typeof value === "string") return value.replaceAll("$surface", surface);
  if (Array.isArray(value)) return value.map((item) => withSurface(item, surface));
  return isPlain(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withSurface(one, surface)])) : value;
}

const KINDS: Record<string, (value: unknown) => boolean> = {
  $invocationId: (value) => typeof value === "string" && /^inv_[A-Za-z0-9-]{16,}$/.test(value),
  $artifactId: (value) => typeof value === "string" && /^art_[A-Za-z0-9-]{16,}$/.test(value),
  $durationMs: (value) => Number.isInteger(value),
  $time: (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
};

function compare(at: string, expected: unknown, actual: unknown, found: string[]): void {
  if (isPlain(expected) && isPlain(actual)) {
    for (const [key, value] of Object.entries(expected)) {
      if (key in actual) compare(`${at}/${key}`, value, actual[key], found);
      else found.push(`${at}/${key} is missing`);
    }
    const surplus = Object.entries(actual).filter(([key]) => !(key in expected));
    found.push(...surplus.map(([key, value]) => `${at}/${key} is there: ${short(value)}`));
  } else if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    expected.forEach((value, index) => compare(`${at}/${index}`, value, actual[index], found));
  } else if (!fits(expected, actual)) {
    found.push(`${at} is ${short(actual)}, not ${short(expected)}`);
  }
}

function fits(expected: unknown, actual: unknown): boolean {
  const kind = typeof expected === "string" ? KINDS[expected] : undefined;
  if (kind !== undefined) return kind(actual);
  if (typeof expected === "string" && typeof actual === "string") return withoutTags(actual) === expected;
  return JSON.stringify(expected) === JSON.stringify(actual);
}

/** The tags of placeholders are different in every process. */
function withoutTags(text: string): string {
  return text.replace(/\[REDACTED:([a-z-]+):[^\]]*\]/g, "[REDACTED:$1]");
}

function short(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 300);
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !("rawJSON" in value);
}

function record(value: unknown): Record<string, unknown> {
  if (isPlain(value)) return value;
  throw new Error(`The table should say an object here: ${short(value)}`);
}
