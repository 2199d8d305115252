// What comes of a call, as it comes. All text is set as text.
import { pretty, visible } from "./call.js";
import { make, part } from "./form.js";

const LOG_LINES_MAX = 1000;

export function beginResult() {
  part("result").hidden = false;
  for (const id of ["log", "artifacts"]) part(id).replaceChildren();
  for (const id of ["envelope", "envelope-title", "progress"]) part(id).hidden = true;
  part("took").textContent = "";
  showState("running", "Running…");
}

export function showState(kind, text) {
  part("state").className = `state ${kind}`;
  part("state").textContent = visible(text);
}

export function showEvent(event) {
  if (event.type === "artifact") {
    const { name, path, uri, id, type } = event.artifact ?? event;
    return part("artifacts").append(make("li", { textContent: visible(`${type ?? "file"} ${name ?? path ?? uri ?? id}`) }));
  }
  if (event.type === "progress" && typeof event.percent === "number") {
    part("progress").hidden = false;
    part("progress").value = event.percent;
  }
  const percent = event.type === "progress" && typeof event.percent === "number" ? `${event.percent}% ` : "";
  const fields = event.fields && Object.keys(event.fields).length && event.type === "log" ? JSON.stringify(event.fields) : "";
  const level = event.type === "progress" ? "progress" : event.level;
  const line = make("li", { className: level });
  line.append(make("span", { className: "level", textContent: level }));
  line.append(make("span", { textContent: visible(`${percent}${event.message ?? ""}`) }));
  if (fields) line.append(make("span", { className: "muted", textContent: visible(fields) }));
  const log = part("log");
  log.append(line);
  if (log.childElementCount > LOG_LINES_MAX) log.firstElementChild.remove();
  log.scrollTop = log.scrollHeight;
}

export function showEnvelope(envelope) {
  if (envelope.ok) showState("completed", "Done");
  else showState(envelope.error.code === "CANCELLED" ? "cancelled" : "failed", `${envelope.error.code}: ${envelope.error.message}`);
  part("took").textContent = `${envelope.meta.durationMs} ms`;
  for (const id of ["envelope", "envelope-title"]) part(id).hidden = false;
  part("envelope").textContent = pretty(envelope);
}
