// A hub with something of everything in it, so that each page is looked at with content and not only when it is empty.
import type { Yard } from "./yard.ts";

/** The runs that were made. */
export interface Everything {
  story: string;
  waiting: string;
  review: string;
  question: string;
  failed: string;
  running: string;
  cancelled: string;
  artifact: string;
  approval: string;
  /** The number of the story's first command. */
  call: number;
}

const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const made = new WeakMap<Yard, Promise<Everything>>();

/** Which agent does what; whoever takes pictures has nicer names for them. */
export const AGENTS = { story: "story", shell: "asks-shell", edits: "edits", question: "asks-question", fails: "fails-provider-rate-limited", waits: "waits" };

/** Fills the hub, once. */
export function everything(yard: Yard, agents = AGENTS): Promise<Everything> {
  const found = made.get(yard) ?? fill(yard, agents);
  made.set(yard, found);
  return found;
}

async function fill(yard: Yard, agents: typeof AGENTS): Promise<Everything> {
  const { api } = yard;
  const story = await yard.start(agents.story, "Find out why a berth is booked twice, and mend it", { workspace: await yard.repository("pier") });
  const artifact = await addArtifacts(yard, story);
  await api.through(story);
  const call = (await api.events(story)).find(({ type, payload }) => type === "run.tool.call" && payload["tool"] === "shell")?.sequence;
  if (call === undefined) throw new Error("the story has no command");
  const [waiting, review, question, failed, running] = await Promise.all([
    yard.start(agents.shell, "Check the prices of the winter season"),
    yard.start(agents.edits, "Count begun metres whole, and say so in the docs", { workspace: await yard.repository("marina") }),
    yard.start(agents.question, "Book the Aurora"),
    yard.start(agents.fails, "Translate the price list"),
    yard.start(agents.waits, "Watch the tide tables"),
  ]);
  const cancelled = await yard.start(agents.waits, "Write a poem about the harbor");
  await api.until(cancelled, "running");
  await api.post(`/runs/${cancelled}/cancel`);
  const approval = await api.asked(waiting);
  await Promise.all([api.asked(review), api.asked(question), api.until(failed, "failed"), api.until(running, "running"), api.until(cancelled, "cancelled")]);
  await api.post("/policy/rules", { effect: "deny", kind: "write", match: "migrations/**" });
  return { story, waiting, review, question, failed, running, cancelled, artifact, approval: approval.id, call };
}

/** A page, a picture and a text; gives the page's id. */
async function addArtifacts(yard: Yard, run: string): Promise<string> {
  const add = async (body: Record<string, unknown>): Promise<string> =>
    (await yard.api.post<{ artifact: { id: string } }>(`/runs/${run}/artifacts`, body)).artifact.id;
  await add({ name: "notes.md", facts: { kind: "file", path: "docs/notes.md" }, text: "# Notes\n\nTwo ships, one berth.\n" });
  const html = `<!doctype html><title>Berths</title><style>body { font-family: sans-serif }</style><h1>Berths</h1><script>document.title = "ran"; parent.postMessage("escaped", "*")</script><p>Two ships, one berth.</p>`;
  const page = await add({ name: "berths.html", facts: { kind: "generated_docs", sourceRoute: "/berths", language: "en", buildStatus: "succeeded" }, text: html });
  const viewport = { width: 1280, height: 720 };
  await add({ name: "start.png", facts: { kind: "screenshot", viewport, route: "/", theme: "light", language: "en", privacyReview: "passed" }, base64: PICTURE });
  return page;
}
