// What comes of a call, as it comes. All text is set as text.
import { pretty } from "./call.js";
import { FormError, make, nextId, part, show } from "./form.js";

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
  show("state", text);
}

export function showEvent(event) {
  if (event.type === "artifact") {
    const { name, path, uri, id, type } = event.artifact ?? event;
    return part("artifacts").append(make("li", { textContent: `${type ?? "file"} ${name ?? path ?? uri ?? id}` }));
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
  line.append(make("span", { textContent: `${percent}${event.message ?? ""}` }));
  if (fields) line.append(make("span", { className: "muted", textContent: fields }));
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

export function clearIssues() {
  part("issues").hidden = true;
  part("issues").textContent = "";
  for (const issue of part("call").querySelectorAll(".issue")) issue.remove();
  for (const field of part("call").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Shows each issue at the place that `find` gives for its path, and the rest above the form. */
export function showIssues(issues, find) {
  const rest = [];
  for (const { path, message } of issues) {
    const place = path.length ? find(path) : null;
    if (!place) {
      rest.push(path.length ? `${path.join(".")}: ${message}` : message);
      continue;
    }
    const issue = make("p", { className: "issue bad", id: nextId(), textContent: message });
    const control = place.matches("input, textarea, select") ? place : place.querySelector("input, textarea, select");
    control?.setAttribute("aria-invalid", "true");
    control?.setAttribute("aria-errormessage", issue.id);
    (place.matches("input, textarea, select") ? place.parentElement : place).append(issue);
  }
  part("issues").hidden = rest.length === 0;
  show("issues", rest.join("\n"));
  part("call").querySelector("[aria-invalid]")?.focus();
}

export function showFormError(error) {
  if (!(error instanceof FormError)) throw error;
  error.element.setAttribute("aria-invalid", "true");
  error.element.after(make("p", { className: "issue bad", textContent: error.message }));
  error.element.focus();
}
