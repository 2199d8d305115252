// A call in other words: as curl, command line, TypeScript and JSON. Each of them gives the same envelope when it is replayed, whatever
// is in the input.
import type { Json } from "../../ui/schema-form";

/** One call as it is sent. */
export interface DevCall {
  input: Json;
  confirm?: boolean;
  idempotencyKey?: string;
  timeoutMs?: Json;
}

/** One argument for a POSIX shell, whatever is in it. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_/:.,@%+][A-Za-z0-9_/:.,@%+=-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The call for curl. The token stays in the environment. */
export function asCurl(origin: string, action: string, call: DevCall): string {
  const url = `${origin}/api/v1/actions/${encodeURIComponent(action)}/invoke`;
  const lines = [
    `curl -X POST ${quoted(url)}`,
    `-H "Authorization: Bearer $RUNYARD_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `--data-raw ${quoted(JSON.stringify(call))}`,
  ];
  return lines.join(" \\\n  ");
}

/** The call for the command line of the application. */
export function asCommand(application: string, action: string, call: DevCall): string {
  const words = [quoted(application), "call", quoted(action.replaceAll("_", "-"))];
  words.push("--json", quoted(JSON.stringify(call.input)));
  if (call.timeoutMs !== undefined) words.push("--timeout-ms", quoted(String(call.timeoutMs)));
  if (call.idempotencyKey !== undefined) words.push("--idempotency-key", quoted(call.idempotencyKey));
  if (call.confirm) words.push("--confirm");
  return words.join(" ");
}

/** The call for the client package. */
export function asTypeScript(origin: string, action: string, { input, ...options }: DevCall): string {
  const given = Object.keys(options).length ? `, ${literal({ ...options }, "")}` : "";
  return [
    `import { createClient } from "@runyard/client";`,
    "",
    `const client = createClient({ baseUrl: ${JSON.stringify(origin)}, auth: { kind: "token", token: process.env.RUNYARD_TOKEN ?? "" } });`,
    `const envelope = await client.call(${JSON.stringify(action)}, ${literal(input, "")}${given});`,
    `console.log(JSON.stringify(envelope, null, 2));`,
    "",
  ].join("\n");
}

/** The call as one line for the command `json`, which reads such lines. */
export function asJson(action: string, call: DevCall): string {
  return JSON.stringify({ action, ...call });
}

/** A value as an expression. Not simply JSON: there `__proto__` is a name like any other. */
function literal(value: Json, indent: string): string {
  const inner = `${indent}  `;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) {
    return value.length ? `[\n${value.map((each) => `${inner}${literal(each, inner)},\n`).join("")}${indent}]` : "[]";
  }
  const pairs = Object.entries(value).map(([name, each]) => `${inner}${key(name)}: ${literal(each, inner)},\n`);
  return pairs.length ? `{\n${pairs.join("")}${indent}}` : "{}";
}

function key(name: string): string {
  if (name === "__proto__") return `["__proto__"]`;
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}
