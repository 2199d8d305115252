// What kind of field each part of a JSON Schema gets. Whatever has none of its own gets a JSON editor, so that every input can be
// given. Nothing is validated here: the runtime does that, and its issues are shown.
import { isObject, own, typeOf, type Json } from "./json";

const DEPTH_MAX = 4;
const REFS_MAX = 16;
const FIELDS_MAX = 500;
const ONE_LINE_MAX = 200;
const LONG = /text|body|content|description|message|prompt|task|note|comment|reason|script|patch|markdown/i;

type Schema = Record<string, unknown>;

/** One of the values to choose from, with what it means. */
export interface Choice {
  value: Json;
  about?: string;
}

/** A field of a group. */
export interface NamedShape {
  name: string;
  shape: Shape;
  required: boolean;
}

/** One of the forms that a value can have; one without a name is known by its place. */
export interface Option {
  label: string | null;
  about: string;
  shape: Shape;
}

/** What stands in an empty field: the value that counts then, or one such as could stand there. */
export type Hint = { word: "default" | "suchAs"; value: string } | null;

/** A field: what it is, what it says about itself, and whether it may be null. */
export type Shape = { about: string; hint: Hint; nullable: boolean } & (
  | { kind: "text"; long: boolean }
  | { kind: "number" }
  | { kind: "choice"; choices: Choice[] }
  | { kind: "fixed"; value: Json }
  | { kind: "json" }
  | { kind: "textOrJson"; types: string[] | null }
  | { kind: "list"; item: Shape }
  | { kind: "group"; fields: NamedShape[] }
  | { kind: "union"; options: Option[] }
);

const made = new WeakMap<object, Shape>();

/** The shape of a schema; made once for each. */
export function shapeOf(schema: unknown): Shape {
  if (typeof schema !== "object" || schema === null) return make(schema);
  const found = made.get(schema) ?? make(schema);
  made.set(schema, found);
  return found;
}

function make(schema: unknown): Shape {
  try {
    return new Maker(schema).field(schema, 0, "");
  } catch (error) {
    console.warn("no form can be made of this schema", error);
    return { kind: "json", about: "", hint: null, nullable: false };
  }
}

/** The schemas that a value may follow, where there are several. */
function alternatives(schema: Schema): unknown[] | undefined {
  const found = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(found) ? found : undefined;
}

const isNull = (schema: unknown): boolean => own(schema, "type") === "null";

const text = (value: unknown): string => (typeof value === "string" ? value : "");

class Maker {
  private readonly root: unknown;
  private fields = 0;

  constructor(root: unknown) {
    this.root = root;
  }

  field(schema: unknown, depth: number, name: string): Shape {
    this.fields += 1;
    if (this.fields > FIELDS_MAX) throw new Error(`more than ${FIELDS_MAX} fields`);
    const [plain, nullable] = this.simple(schema);
    const common = { about: text(plain["description"]), hint: hint(plain), nullable };
    const choices = choicesOf(plain);
    if (choices) return { ...common, kind: "choice", choices };
    const type = plain["type"];
    if (type === "string") return { ...common, kind: "text", long: isLong(plain, name) };
    if (type === "integer" || type === "number") return { ...common, kind: "number" };
    if (type === "array" && plain["items"] !== undefined && !Array.isArray(plain["items"]) && depth < DEPTH_MAX) {
      return { ...common, kind: "list", item: this.field(plain["items"], depth + 1, name) };
    }
    if (isObject(plain["properties"]) && depth < DEPTH_MAX) return { ...common, kind: "group", fields: this.group(plain, depth) };
    if (this.takesText(plain)) return { ...common, kind: "textOrJson", types: this.typesOf(plain) };
    const options = depth < DEPTH_MAX ? this.options(plain, depth) : null;
    return options ? { ...common, kind: "union", options } : { ...common, kind: "json" };
  }

  private group(plain: Schema, depth: number): NamedShape[] {
    const required = new Set(Array.isArray(plain["required"]) ? plain["required"] : []);
    const properties = isObject(plain["properties"]) ? plain["properties"] : {};
    return Object.entries(properties).map(([name, schema]) => ({
      name,
      shape: this.field(schema, depth + 1, name),
      required: required.has(name),
    }));
  }

  /** The forms of a value that is one of several objects; null where it is anything else. */
  private options(plain: Schema, depth: number): Option[] | null {
    const each = alternatives(plain)?.filter((one) => !isNull(one));
    if (!each || each.length < 2) return null;
    const options = each.map((schema) => {
      const [found] = this.simple(schema);
      const shape = this.field(schema, depth + 1, "");
      if (shape.kind !== "group") return null;
      const fields = shape.fields.map((field) => (field.required ? { ...field, shape: fixed(field.shape) } : field));
      const first = fields.find((field) => field.shape.kind === "fixed")?.shape;
      const label = first?.kind === "fixed" ? words(first.value) : text(found["title"]) || null;
      return { label, about: shape.about, shape: { ...shape, fields } };
    });
    return options.every((option) => option !== null) ? options : null;
  }

  /** The schema with references followed, and without the null that only says that it may be left out. */
  private simple(schema: unknown): [Schema, boolean] {
    let found: Schema = isObject(schema) ? schema : {};
    let nullable = false;
    for (let step = 0; step < REFS_MAX; step += 1) {
      const { $ref, allOf, anyOf, oneOf, ...rest } = found;
      const each = alternatives(found);
      const choices = each?.filter((choice) => !isNull(choice));
      if (each && choices && choices.length < each.length) nullable = true;
      const only = choices?.length === 1 ? choices[0] : undefined;
      if (typeof $ref === "string") found = { ...this.at($ref), ...rest };
      else if (Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0])) found = { ...allOf[0], ...rest };
      else if (isObject(only)) found = { ...only, ...rest };
      else break;
    }
    const type = found["type"];
    if (Array.isArray(type)) {
      const types = type.filter((one) => one !== "null");
      if (types.length < type.length) nullable = true;
      if (types.length === 1) found = { ...found, type: types[0] };
    }
    if (Array.isArray(found["enum"]) && found["enum"].includes(null)) nullable = true;
    return [found, nullable];
  }

  private at(reference: string): Schema {
    if (!reference.startsWith("#/")) return {};
    const steps = reference.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const found = steps.reduce<unknown>(own, this.root);
    return isObject(found) ? found : {};
  }

  /** Whether a person may simply write text, though other things fit as well. */
  private takesText(schema: Schema): boolean {
    const each = alternatives(schema) ?? (Array.isArray(schema["type"]) ? [schema] : []);
    return each.some((choice) => [this.simple(choice)[0]["type"]].flat().includes("string"));
  }

  /** The types that a value may have; null where it may have any. */
  private typesOf(schema: Schema): string[] | null {
    const each = alternatives(schema)?.map((choice) => this.simple(choice)[0]) ?? [schema];
    const types = each.map((choice): string[] | null => {
      if (choice["type"]) return [choice["type"]].flat().filter((type) => typeof type === "string");
      const values = Array.isArray(choice["enum"]) ? choice["enum"] : "const" in choice ? [choice["const"]] : null;
      return values?.map(typeOf) ?? null;
    });
    return types.some((type) => type === null) ? null : types.flatMap((type) => type ?? []);
  }
}

/** The values to choose from, each with what it means. */
function choicesOf(schema: Schema): Choice[] | null {
  const each = alternatives(schema);
  const isChoice = (choice: unknown): choice is Schema => isObject(choice) && ("const" in choice || Array.isArray(choice["enum"]));
  if (each?.length && each.every(isChoice)) {
    return each.flatMap((choice) => {
      const values = (Array.isArray(choice["enum"]) ? choice["enum"] : [choice["const"]]) as Json[];
      const about = text(choice["description"]);
      return values.map((value) => (about ? { value, about } : { value }));
    });
  }
  if (Array.isArray(schema["enum"])) return (schema["enum"] as Json[]).filter((value) => value !== null).map((value) => ({ value }));
  if ("const" in schema) return [{ value: schema["const"] as Json }];
  if (schema["type"] === "boolean") return [{ value: true }, { value: false }];
  return null;
}

/** What can have one value only has it. */
function fixed(shape: Shape): Shape {
  const [only, ...others] = shape.kind === "choice" ? shape.choices : [];
  return only && others.length === 0 ? { about: shape.about, hint: null, nullable: false, kind: "fixed", value: only.value } : shape;
}

/** A value for people: text as it is, the rest as JSON. */
export function words(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isLong(schema: Schema, name: string): boolean {
  const most = schema["maxLength"];
  return (typeof most === "number" ? most : Infinity) > ONE_LINE_MAX && LONG.test(name);
}

function hint(schema: Schema): Hint {
  const { default: value, examples } = schema;
  if (value !== undefined && value !== null) return { word: "default", value: JSON.stringify(value) };
  return Array.isArray(examples) && examples.length ? { word: "suchAs", value: JSON.stringify(examples[0]) } : null;
}
