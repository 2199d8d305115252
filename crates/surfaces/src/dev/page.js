// The page: which action, its form, one call at a time, and what comes of it. All text is set as text.
import { LoggedOut, ask, asCommand, asCurl, deed, exact, invoke, logOut, pretty } from "./call.js";
import { formOf, make, parsed, part, show } from "./form.js";
import { beginResult, clearIssues, showEnvelope, showEvent, showFormError, showIssues, showState } from "./result.js";

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

const focusInput = () => (part("fields").querySelector("input, textarea, select") ?? part("run")).focus();

async function choose(action) {
  if (action === chosen) return isJson() ? part("json").focus() : focusInput();
  if (running && !(await stopped(action))) return;
  const built = formOf(action.inputSchema);
  chosen = action;
  form = built;
  history.replaceState(null, "", `#${action.name}`);
  for (const button of part("list").querySelectorAll("button")) {
    if (button.dataset.name === action.name) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  part("empty").hidden = true;
  part("action").hidden = false;
  part("result").hidden = true;
  for (const id of ["title", "name", "description"]) show(id, action[id]);
  const effect = EFFECTS[action.sideEffects] ?? action.sideEffects;
  const badges = [[effect, action.sideEffects]];
  if (action.requiresConfirmation) badges.push(["asks first", "asks"]);
  if (action.peopleOnly) badges.push(["people only", ""]);
  if (action.deprecated) badges.push(["deprecated", "asks"]);
  part("badges").replaceChildren(
    ...badges.map(([text, kind]) => make("span", { className: `badge ${kind}`, textContent: text })),
  );
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
  focusInput();
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
  return (isJson() ? parsed(part("json")) : form.read()) ?? {};
}

/** Where an issue belongs in the form, if that is what is shown. */
const placeOf = (path) => (isJson() ? null : form.find(path));

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
    if (kind === "form" && !fits) return showIssues([{ path: [], message: "The form cannot show all of this, so it stays JSON." }], placeOf);
    showAs(kind);
  } catch (error) {
    showFormError(error);
  }
}

/** The call as it is sent; what cannot be read is shown and is null. */
function readCall() {
  clearIssues();
  try {
    const call = { input: readInput() };
    const [timeout, key] = [part("timeout").value.trim(), part("key").value];
    if (timeout) call.timeoutMs = /^\d+$/.test(timeout) && exact(timeout) ? Number(timeout) : timeout;
    if (key) call.idempotencyKey = key;
    if (chosen.requiresConfirmation) call.confirm = true;
    return call;
  } catch (error) {
    showFormError(error);
    return null;
  }
}

// ---- the call

/** Opens a dialog and gives whether its button for yes was pressed. */
function answered(id) {
  const dialog = part(id);
  return new Promise((resolve) => {
    let answer = false;
    part(`${id}-yes`).onclick = () => {
      answer = true;
      dialog.close();
    };
    part(`${id}-no`).onclick = () => dialog.close();
    dialog.onclose = () => resolve(answer);
    dialog.showModal();
  });
}

function confirmed(action, call) {
  show("confirm-title", `${deed(action)}?`);
  show("confirm-name", action.name);
  show("confirm-effect", action.sideEffects === "destructive" ? ", which is destructive," : "");
  show("confirm-input", pretty(call.input));
  show("confirm-yes", deed(action));
  part("confirm-yes").className = action.sideEffects === "destructive" ? "danger" : "primary";
  return answered("confirm");
}

/** Whether what runs may make room for another action: it is stopped only when the person says so. */
async function stopped(next) {
  show("leave-title", `Stop ${chosen.name}?`);
  show("leave-name", chosen.name);
  show("leave-next", next.name);
  if (!(await answered("leave"))) return false;
  running?.abort();
  return true;
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
    if (!envelope.ok) showIssues(envelope.error.issues ?? [], placeOf);
  } catch (error) {
    if (controller.signal.aborted) showState("cancelled", "Cancelled: the action was stopped.");
    else if (error instanceof LoggedOut) location.replace("/login");
    else showState("failed", `No answer: ${error.message}`);
  } finally {
    running = null;
    part("run").disabled = false;
    part("cancel").disabled = true;
    part("progress").hidden = true;
    // There is nothing to stop any more, so its result stays.
    part("leave").close();
  }
}

// ---- the rest

async function copy(write) {
  const call = readCall();
  if (!call) return;
  const text = write(call);
  try {
    // There is no clipboard for a page that came unencrypted from another machine.
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    part("copy-text").value = text;
    part("copy").showModal();
    part("copy-text").select();
  }
}

function say(text) {
  show("said", text);
  part("notice").hidden = false;
  show("notice", text);
  setTimeout(() => (part("notice").hidden = true), 4000);
}

async function start() {
  const response = await ask("/dev/api/actions");
  const envelope = await response.json();
  if (!envelope.ok) return say(envelope.error.message);
  ({ app, actions } = envelope.data);
  document.title = `${app.name}: dev page`;
  show("app", app.name);
  show("version", app.version);
  show("who", envelope.data.actor.id);
  showList();
  const named = actions.find((action) => `#${action.name}` === location.hash);
  if (named) choose(named);
}

part("filter").oninput = showList;
document.querySelector("nav").onkeydown = moveInList;
document.onkeydown = (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "/" && !event.target.matches("input, textarea, select")) {
    event.preventDefault();
    part("filter").focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && chosen) part("call").requestSubmit();
};
part("call").onsubmit = run;
part("copy-done").onclick = () => part("copy").close();
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
