// A form from a JSON schema. Whatever has no form of its own gets a JSON editor, so that every input can be given.
//
// A field is {element, read, write, find, blank}: `read` gives its value or undefined where it is left out, `find(path)` the place
// for an issue, `blank` is what an empty row of a list is sent as. Nothing is validated here: the runtime does that, and its issues
// are shown.
import { exact, visible } from "./call.js";

const DEPTH_MAX = 3;
const REFS_MAX = 16;
const ONE_LINE_MAX = 200;
const LONG = /text|body|content|description|message|prompt|task|note|comment|reason|script|patch|markdown/i;
let ids = 0;

export const part = (id) => document.getElementById(id);

export const nextId = () => `f${(ids += 1)}`;

/** An element whose text is set as text, with nothing hidden in it. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (properties.textContent !== undefined) element.textContent = visible(properties.textContent);
  element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

/** Sets the text of a part of the page. */
export const show = (id, text) => (part(id).textContent = visible(text));

/** The form of an action's input: one JSON editor where the schema is none that a form can be made of. */
export function formOf(schema) {
  const root = schema ?? {};
  try {
    const plain = simple(root, root);
    if (plain.properties) return group(plain, root, 0);
  } catch (error) {
    console.warn("no form can be made of this schema", error);
  }
  const whole = json();
  whole.control.setAttribute("aria-label", "Input as JSON");
  return whole;
}

/** The schema with references followed, and without the null that only says that it may be left out. */
function simple(schema, root) {
  let found = typeof schema === "boolean" ? {} : schema;
  for (let step = 0; step < REFS_MAX; step += 1) {
    const { $ref, allOf, anyOf, oneOf, ...own } = found;
    const choices = (anyOf ?? oneOf)?.filter((choice) => choice.type !== "null");
    if ($ref) found = { ...at($ref, root), ...own };
    else if (allOf?.length === 1) found = { ...allOf[0], ...own };
    else if (choices?.length === 1) found = { ...choices[0], ...own };
    else break;
  }
  if (Array.isArray(found.type)) {
    const types = found.type.filter((type) => type !== "null");
    if (types.length === 1) found = { ...found, type: types[0] };
  }
  return found;
}

function at(reference, root) {
  if (!reference.startsWith("#/")) return {};
  const steps = reference.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce(own, root) ?? {};
}

/** What somebody put there, never what every object has, such as a constructor. */
const own = (value, name) => (typeof value === "object" && value && Object.hasOwn(value, name) ? value[name] : undefined);

/** The values to choose from, each with what it means. */
function choicesOf(schema) {
  const each = schema.oneOf ?? schema.anyOf;
  if (each?.length && each.every((choice) => typeof choice === "object" && ("const" in choice || choice.enum))) {
    return each.flatMap((choice) =>
      (choice.enum ?? [choice.const]).map((value) => ({ value, about: choice.description })),
    );
  }
  if (schema.enum) return schema.enum.filter((value) => value !== null).map((value) => ({ value }));
  if ("const" in schema) return [{ value: schema.const }];
  if (schema.type === "boolean") return [{ value: true }, { value: false }];
  return null;
}

/** The types that a value may have; null where it may have any. */
function typesOf(schema, root) {
  const each = (schema.anyOf ?? schema.oneOf)?.map((choice) => simple(choice, root)) ?? [schema];
  const types = each.map((choice) => {
    if (choice.type) return choice.type;
    return (choice.enum ?? ("const" in choice ? [choice.const] : null))?.map(typeOf);
  });
  return types.includes(undefined) ? null : types.flat();
}

function typeOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Whether a person may simply write text, though other things fit as well. */
function takesText(schema, root) {
  const each = schema.anyOf ?? schema.oneOf ?? (Array.isArray(schema.type) ? [schema] : []);
  return each.some((choice) => [simple(choice, root).type].flat().includes("string"));
}

function field(schema, root, depth, name) {
  const plain = simple(schema, root);
  const choices = choicesOf(plain);
  if (choices) return choice(choices, plain);
  if (plain.type === "string") return text(plain, name);
  if (plain.type === "integer" || plain.type === "number") return number(plain);
  if (plain.type === "array" && plain.items && depth < DEPTH_MAX) return list(plain, root, depth, name);
  if (plain.properties && depth < DEPTH_MAX) return group(plain, root, depth + 1);
  return takesText(plain, root) ? textOrJson(typesOf(plain, root)) : json();
}

function hint(schema) {
  if (schema.default !== undefined && schema.default !== null) return `default: ${JSON.stringify(schema.default)}`;
  return schema.examples?.length ? `such as ${JSON.stringify(schema.examples[0])}` : "";
}

function control(element, read, write) {
  element.id = nextId();
  if (element.placeholder) element.placeholder = visible(element.placeholder);
  return { element, control: element, read, write, find: () => null, blank: "" };
}

function choice(choices, schema) {
  const none = make("option", { value: "", textContent: hint(schema) || "not set" });
  const options = choices.map(({ value, about }, index) => {
    const label = typeof value === "string" ? value : JSON.stringify(value);
    return make("option", { value: String(index), textContent: about ? `${label}: ${about}` : label });
  });
  const select = make("select", {}, none, ...options);
  const place = (value) => choices.findIndex((choice) => JSON.stringify(choice.value) === JSON.stringify(value));
  const write = (value) => (select.value = place(value) < 0 ? "" : String(place(value)));
  return control(select, () => (select.value === "" ? undefined : choices[Number(select.value)].value), write);
}

function text(schema, name) {
  const long = (schema.maxLength ?? Infinity) > ONE_LINE_MAX && LONG.test(name ?? "");
  const input = make(long ? "textarea" : "input", { placeholder: hint(schema), autocomplete: "off" });
  if (long) input.rows = 3;
  return control(input, () => (input.value === "" ? undefined : input.value), (value) => (input.value = value ?? ""));
}

function number(schema) {
  const input = make("input", { inputMode: "decimal", placeholder: hint(schema), autocomplete: "off" });
  const read = () => {
    const given = input.value.trim();
    if (given === "") return undefined;
    // What is no number goes on as it is, for the validation to name.
    if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(given)) return given;
    if (!exact(given)) throw new FormError(input, inexact(given));
    return Number(given);
  };
  return control(input, read, (value) => (input.value = value === undefined || value === null ? "" : String(value)));
}

function json() {
  const area = make("textarea", { rows: 4, spellcheck: false, placeholder: "JSON", className: "mono" });
  const read = () => (area.value.trim() === "" ? undefined : parsed(area));
  return control(area, read, (value) => (area.value = value === undefined ? "" : JSON.stringify(value, null, 2)));
}

/** Text, unless it is JSON of another type that fits; it says which of the two it takes it for. */
function textOrJson(types) {
  const area = make("textarea", { rows: 3, spellcheck: false, placeholder: "Text, or JSON" });
  const note = make("p", { className: "about kind" });
  note.setAttribute("role", "status");
  const isText = (text) => {
    try {
      const type = typeOf(JSON.parse(text));
      return types !== null && !types.includes(type) && !(type === "number" && types.includes("integer"));
    } catch {
      return true;
    }
  };
  const tell = () => {
    const said = isText(area.value) ? "Sent as text." : "Sent as JSON.";
    note.hidden = area.value === "";
    if (note.textContent !== said) note.textContent = said;
  };
  const write = (value) => {
    const plain = typeof value === "string" && isText(value);
    area.value = value === undefined ? "" : plain ? value : JSON.stringify(value, null, 2);
    tell();
  };
  const read = () => (area.value === "" ? undefined : isText(area.value) ? area.value : parsed(area));
  area.oninput = tell;
  tell();
  return { ...control(area, read, write), element: make("div", {}, area, note) };
}

const inexact = (literal) => `A browser cannot hold the number ${literal} exactly, so it was not sent.`;

/** The JSON in a text box, with every number in it as it is written. */
export function parsed(area) {
  let value;
  try {
    value = JSON.parse(area.value);
  } catch (error) {
    throw new FormError(area, `This is not valid JSON: ${error.message}.`);
  }
  const literals = area.value.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, " ").match(/-?\d[\d.eE+-]*/g) ?? [];
  const changed = literals.find((literal) => !exact(literal));
  if (changed) throw new FormError(area, inexact(changed));
  return value;
}

/** What the form itself cannot read. */
export class FormError extends Error {
  constructor(element, message) {
    super(message);
    this.element = element;
  }
}

function list(schema, root, depth, name) {
  const rows = make("div", { className: "items" });
  const add = make("button", { type: "button", textContent: "Add" });
  let items = [];
  const append = (value) => {
    const item = field(schema.items, root, depth + 1, name);
    const remove = make("button", { type: "button", textContent: "Remove" });
    const row = make("div", { className: "item" }, item.element, remove);
    item.control?.setAttribute("aria-label", `${visible(name)} ${items.length + 1}`);
    remove.setAttribute("aria-label", `Remove ${visible(name)} ${items.length + 1}`);
    remove.onclick = () => {
      items = items.filter((other) => other !== item);
      row.remove();
      add.focus();
    };
    if (value !== undefined) item.write(value);
    items.push(item);
    rows.append(row);
    return item;
  };
  add.onclick = () => append().control?.focus();
  add.setAttribute("aria-label", `Add to ${visible(name)}`);
  return {
    element: make("div", { className: "list" }, rows, add),
    read: () => (items.length ? items.map((item) => item.read() ?? item.blank) : undefined),
    blank: [],
    write: (value) => {
      items = [];
      rows.replaceChildren();
      if (Array.isArray(value)) value.forEach((each) => append(each));
    },
    find: ([index, ...rest]) => items[index]?.find(rest) ?? items[index]?.element ?? null,
  };
}

function group(schema, root, depth) {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties).map(([name, own]) => {
    const inner = field(own, root, depth, name);
    const about = simple(own, root).description ?? "";
    const mark = required.has(name) ? make("span", { className: "required", textContent: "required" }) : "";
    const title = inner.control
      ? make("label", { htmlFor: inner.control.id }, name, mark)
      : make("span", { className: "label" }, name, mark);
    const row = make("div", { className: "field" }, title);
    if (about) row.append(make("p", { className: "about", id: nextId(), textContent: about }));
    row.append(inner.element);
    if (about) inner.control?.setAttribute("aria-describedby", row.querySelector(".about").id);
    if (required.has(name)) inner.control?.setAttribute("aria-required", "true");
    return { name, inner, row };
  });
  const empty = make("p", { className: "muted", textContent: "It takes no input." });
  return {
    element: make("div", { className: depth ? "group" : "fields" }, ...(fields.length ? fields.map(({ row }) => row) : [empty])),
    read: () => {
      const given = fields.map(({ name, inner }) => [name, inner.read()]).filter(([, value]) => value !== undefined);
      return given.length || depth === 0 ? Object.fromEntries(given) : undefined;
    },
    blank: {},
    write: (value) => fields.forEach(({ name, inner }) => inner.write(own(value, name))),
    find: ([name, ...rest]) => {
      const found = fields.find((field) => field.name === name);
      return found ? (found.inner.find(rest) ?? found.row) : null;
    },
  };
}
