// Talks to the server and puts calls into words; knows nothing of the page.

const PAGE_KEY = "runyard.page";
const SHOWN_CHARS_MAX = 400_000;

/** What is thrown when there is no session any more. */
export class LoggedOut extends Error {}

/** Sends a request with the page's key. */
export async function ask(path, options = {}) {
  const headers = { "x-runyard-page": localStorage.getItem(PAGE_KEY) ?? "", ...options.headers };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) throw new LoggedOut();
  return response;
}

export async function logOut() {
  await ask("/logout", { method: "POST" }).catch(() => {});
  localStorage.removeItem(PAGE_KEY);
}

/** Runs an action; `on(event)` is told what happens. Gives the envelope. */
export async function invoke(name, body, signal, on) {
  const response = await ask(`/dev/api/actions/${encodeURIComponent(name)}/invoke`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body,
    signal,
  });
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return read(await response.text());
  let envelope = null;
  for await (const event of events(response.body)) {
    if (event.type === "result") envelope = event.envelope;
    else on(event);
  }
  if (!envelope) throw new Error("The connection ended before the result came.");
  return envelope;
}

/** The data of server-sent events; each is one line of JSON. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const line = block.split("\n").find((line) => line.startsWith("data:"));
      if (line) yield read(line.slice(5));
    }
  }
}

/** Reads JSON; a number that a script cannot hold stays as it is written, in browsers that can do so. */
function read(text) {
  const keep = (value, source) => typeof value === "number" && source && JSON.rawJSON && !exact(source);
  return JSON.parse(text, (_, value, context) => (keep(value, context?.source) ? JSON.rawJSON(context.source) : value));
}

/** Text in which nothing is hidden: what has no shape of its own, or turns the direction of writing, is spelled out as in JSON. */
export function visible(text) {
  const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
  const unit = (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return String(text ?? "").replace(hidden, (found) => found.split("").map(unit).join(""));
}

/** Whether a number as it is written is still that number once a script has read it. */
export function exact(literal) {
  const digits = (text) => {
    const [, sign, whole, rest = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
    const all = `${whole}${rest}`.replace(/^0+/, "");
    const significant = all.replace(/0+$/, "");
    return significant && `${sign}${significant}e${Number(power) - rest.length + all.length - significant.length}`;
  };
  return Number.isFinite(Number(literal)) && digits(literal) === digits(String(Number(literal)));
}

/** JSON for people. */
export function pretty(value) {
  const text = visible(JSON.stringify(value, null, 2) ?? "");
  if (text.length <= SHOWN_CHARS_MAX) return text;
  return `${text.slice(0, SHOWN_CHARS_MAX)}\n… ${text.length - SHOWN_CHARS_MAX} more characters`;
}

const VERBS = "add apply approve archive cancel clear close complete create delete deploy drop erase install kill merge move publish purge push reject release remove reset resolve restart restore revoke rotate run send set start stop undo update wipe";

/** What an action does, verb first. A title that somebody wrote stands; one made of a name such as task_delete is turned round. */
export function deed(action) {
  const words = action.name.split("_");
  const made = action.title.toLowerCase() === words.join(" ");
  if (made && VERBS.split(" ").includes(words.at(-1))) words.unshift(words.pop());
  const text = made ? words.join(" ") : action.title;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** One argument for a POSIX shell, whatever is in it. */
export function quoted(text) {
  return /^[A-Za-z0-9_\/:.,@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function asCurl(action, call) {
  const url = `${location.origin}/api/v1/actions/${encodeURIComponent(action.name)}/invoke`;
  const lines = [
    `curl -X POST ${quoted(url)}`,
    `-H "Authorization: Bearer $RUNYARD_TOKEN"`,
    `-H 'Content-Type: application/json'`,
    `--data-raw ${quoted(JSON.stringify(call))}`,
  ];
  return lines.join(" \\\n  ");
}

export function asCommand(app, action, call) {
  const words = [quoted(app.name), "call", quoted(action.name.replaceAll("_", "-"))];
  words.push("--json", quoted(JSON.stringify(call.input)));
  if (call.timeoutMs !== undefined) words.push("--timeout-ms", quoted(String(call.timeoutMs)));
  if (call.idempotencyKey !== undefined) words.push("--idempotency-key", quoted(call.idempotencyKey));
  if (call.confirm) words.push("--confirm");
  return words.join(" ");
}
