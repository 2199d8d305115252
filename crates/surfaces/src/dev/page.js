// The page: which action, its form, one call at a time, and what comes of it. All text is set as text.
import { LoggedOut, ask, asCommand, asCurl, deed, invoke, logOut, pretty, visible } from "./call.js";
import { FormError, formOf, make, part } from "./form.js";
import { beginResult, showEnvelope, showEvent, showState } from "./result.js";

const EFFECTS = { read: "reads", write: "writes", destructive: "destructive" };

let app = null;
let actions = [];
let chosen = null;
let form = null;
let running = null;

// ---- the list

function showList() {
  const words = part("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (action) => `${action.name} ${action.title} ${action.description}`.toLowerCase();
  const named = (action) => (action.name === words.join("_") ? 0 : words.every((word) => action.name.includes(word)) ? 1 : 2);
  const fitting = actions.filter((action) => words.every((word) => text(action).includes(word)));
  fitting.sort((one, other) => named(one) - named(other));
  part("list").replaceChildren(
    ...fitting.map((action) => {
      const dot = make("span", { className: `dot ${action.sideEffects}`, title: EFFECTS[action.sideEffects] ?? "" });
      const button = make("button", { type: "button" }, dot, make("span", { textContent: action.name }));
      button.dataset.name = action.name;
      if (action === chosen) button.setAttribute("aria-current", "true");
      button.onclick = () => choose(action);
      return make("li", {}, button);
    }),
  );
  part("count").textContent = words.length
    ? `${fitting.length} of ${actions.length} actions`
    : `${actions.length} actions`;
}

function moveInList(event) {
  const buttons = [...part("list").querySelectorAll("button")];
  const place = buttons.indexOf(document.activeElement);
  if (event.key === "Enter" && event.target === part("filter") && buttons.length) buttons[0].click();
  else if (event.key === "ArrowDown") (buttons[place + 1] ?? buttons[0])?.focus();
  else if (event.key === "ArrowUp") (place > 0 ? buttons[place - 1] : part("filter")).focus();
  else return;
  event.preventDefault();
}

function choose(action) {
  if (running && chosen !== action) running.abort();
  chosen = action;
  history.replaceState(null, "", `#${action.name}`);
  for (const button of part("list").querySelectorAll("button")) {
    if (button.dataset.name === action.name) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  part("empty").hidden = true;
  part("action").hidden = false;
  part("result").hidden = true;
  part("title").textContent = action.title;
  part("name").textContent = action.name;
  part("description").textContent = action.description;
  const effect = EFFECTS[action.sideEffects] ?? action.sideEffects;
  const badges = [[effect, action.sideEffects]];
  if (action.requiresConfirmation) badges.push(["asks first", "asks"]);
  if (action.peopleOnly) badges.push(["people only", ""]);
  if (action.deprecated) badges.push(["deprecated", "asks"]);
  part("badges").replaceChildren(
    ...badges.map(([text, kind]) => make("span", { className: `badge ${kind}`, textContent: text })),
  );
  form = formOf(action.inputSchema);
  part("fields").replaceChildren(form.element);
  part("example").hidden = !action.examples?.length;
  part("json").value = "{}";
  for (const id of ["timeout", "key"]) part(id).value = "";
  part("run").textContent = action.requiresConfirmation ? "Run…" : "Run";
  part("run").className = action.sideEffects === "destructive" ? "danger" : "primary";
  for (const [id, there, where] of [["curl", action.onHttp, "over HTTP"], ["cli", action.onCommandLine, "on the command line"]]) {
    part(id).disabled = !there;
    part(id).title = there ? "" : `This action cannot be called ${where}.`;
  }
  showAs("form");
  clearIssues();
  part("main").scrollTop = 0;
  (part("fields").querySelector("input, textarea, select") ?? part("run")).focus();
}

// ---- the input

const isJson = () => !part("json-field").hidden;

function showAs(kind) {
  part("json-field").hidden = kind === "form";
  part("fields").hidden = kind === "json";
  part("as-form").setAttribute("aria-pressed", String(kind === "form"));
  part("as-json").setAttribute("aria-pressed", String(kind === "json"));
}

function readInput() {
  if (!isJson()) return form.read();
  try {
    return JSON.parse(part("json").value);
  } catch (error) {
    throw new FormError(part("json"), `This is not valid JSON: ${error.message}.`);
  }
}

/** The same whatever the order of keys. */
function same(one, other) {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  const keys = Object.keys(one);
  if (Array.isArray(one) !== Array.isArray(other) || keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]));
}

function setInput(value) {
  form.write(value);
  part("json").value = JSON.stringify(value, null, 2);
  return same(form.read(), value);
}

function switchTo(kind) {
  if ((kind === "json") === isJson()) return;
  clearIssues();
  try {
    const fits = setInput(readInput());
    if (kind === "form" && !fits) return showIssues([{ path: [], message: "The form cannot show all of this, so it stays JSON." }]);
    showAs(kind);
  } catch (error) {
    showFormError(error);
  }
}

function clearIssues() {
  part("issues").hidden = true;
  part("issues").textContent = "";
  for (const issue of part("call").querySelectorAll(".issue")) issue.remove();
  for (const field of part("call").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

function showIssues(issues) {
  const rest = [];
  for (const { path, message } of issues) {
    const place = !isJson() && path.length ? form.find(path) : null;
    if (!place) {
      rest.push(path.length ? `${path.join(".")}: ${message}` : message);
      continue;
    }
    const issue = make("p", { className: "issue bad", id: `i${crypto.randomUUID()}`, textContent: visible(message) });
    const control = place.matches("input, textarea, select") ? place : place.querySelector("input, textarea, select");
    control?.setAttribute("aria-invalid", "true");
    control?.setAttribute("aria-errormessage", issue.id);
    (place.matches("input, textarea, select") ? place.parentElement : place).append(issue);
  }
  part("issues").hidden = rest.length === 0;
  part("issues").textContent = visible(rest.join("\n"));
  part("call").querySelector("[aria-invalid]")?.focus();
}

function showFormError(error) {
  if (!(error instanceof FormError)) throw error;
  error.element.setAttribute("aria-invalid", "true");
  error.element.after(make("p", { className: "issue bad", textContent: error.message }));
  error.element.focus();
}

/** The call as it is sent; what cannot be read is shown and is null. */
function readCall() {
  clearIssues();
  try {
    const call = { input: readInput() ?? {} };
    const [timeout, key] = [part("timeout").value.trim(), part("key").value];
    if (timeout) call.timeoutMs = /^\d+$/.test(timeout) ? Number(timeout) : timeout;
    if (key) call.idempotencyKey = key;
    if (chosen.requiresConfirmation) call.confirm = true;
    return call;
  } catch (error) {
    showFormError(error);
    return null;
  }
}

// ---- the call

function confirmed(action, call) {
  const dialog = part("confirm");
  part("confirm-title").textContent = `${deed(action)}?`;
  part("confirm-name").textContent = action.name;
  part("confirm-effect").textContent = action.sideEffects === "destructive" ? ", which is destructive," : "";
  part("confirm-input").textContent = pretty(call.input);
  part("confirm-yes").textContent = deed(action);
  part("confirm-yes").className = action.sideEffects === "destructive" ? "danger" : "primary";
  return new Promise((resolve) => {
    let answer = false;
    part("confirm-yes").onclick = () => {
      answer = true;
      dialog.close();
    };
    part("confirm-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}

async function run(event) {
  event.preventDefault();
  const action = chosen;
  const call = !running && readCall();
  if (!call) return;
  if (action.requiresConfirmation && !(await confirmed(action, call))) return;
  const controller = new AbortController();
  running = controller;
  part("run").disabled = true;
  part("cancel").disabled = false;
  beginResult();
  try {
    const envelope = await invoke(action.name, JSON.stringify(call), controller.signal, showEvent);
    showEnvelope(envelope);
    if (!envelope.ok) showIssues(envelope.error.issues ?? []);
  } catch (error) {
    if (controller.signal.aborted) showState("cancelled", "Cancelled: the action was stopped.");
    else if (error instanceof LoggedOut) location.replace("/login");
    else showState("failed", `No answer: ${error.message}`);
  } finally {
    running = null;
    part("run").disabled = false;
    part("cancel").disabled = true;
    part("progress").hidden = true;
  }
}

// ---- the rest

async function copy(write) {
  const call = readCall();
  if (!call) return;
  const text = write(call);
  await navigator.clipboard.writeText(text).then(
    () => say("Copied."),
    () => say(text),
  );
}

function say(text) {
  part("said").textContent = text;
  part("notice").hidden = false;
  part("notice").textContent = text;
  setTimeout(() => (part("notice").hidden = true), 4000);
}

async function start() {
  const response = await ask("/dev/api/actions");
  const envelope = await response.json();
  if (!envelope.ok) return say(envelope.error.message);
  ({ app, actions } = envelope.data);
  document.title = `${app.name}: dev page`;
  part("app").textContent = app.name;
  part("version").textContent = app.version;
  part("who").textContent = envelope.data.actor.id;
  showList();
  const named = actions.find((action) => `#${action.name}` === location.hash);
  if (named) choose(named);
}

part("filter").oninput = showList;
document.querySelector("nav").onkeydown = moveInList;
document.onkeydown = (event) => {
  if (event.key === "/" && !event.target.matches("input, textarea, select") && !part("confirm").open) {
    event.preventDefault();
    part("filter").focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && chosen && !part("confirm").open) part("call").requestSubmit();
};
part("call").onsubmit = run;
part("cancel").onclick = () => running?.abort();
part("as-form").onclick = () => switchTo("form");
part("as-json").onclick = () => switchTo("json");
part("example").onclick = () => {
  if (!setInput(chosen.examples[0])) showAs("json");
};
part("curl").onclick = () => copy((call) => asCurl(chosen, call));
part("cli").onclick = () => copy((call) => asCommand(app, chosen, call));
part("logout").onclick = () => logOut().then(() => location.replace("/login"));
start().catch((error) => (error instanceof LoggedOut ? location.replace("/login") : say(error.message)));
