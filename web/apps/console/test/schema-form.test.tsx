// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { draftOf, exact, fits, parseJson, readForm, SchemaForm, type Draft, type FormIssue } from "../src/ui/schema-form";

afterEach(cleanup);

const SHAPES = {
  type: "object",
  properties: {
    text: { type: "string", description: "Some lines of text." },
    title: { type: "string" },
    count: { type: "integer", default: 3 },
    ratio: { type: ["number", "null"] },
    flag: { type: "boolean" },
    kind: { enum: ["a", "b", null] },
    tags: { type: "array", items: { type: "string" } },
    place: { type: "object", properties: { x: { type: "integer" }, y: { type: "integer" } } },
    rows: { type: "array", items: { type: "object", properties: { x: { type: "integer" } } } },
    any: {},
    either: { anyOf: [true, { type: "integer" }] },
    never: false,
    said: { anyOf: [{ type: "string" }, { type: "object" }] },
    toString: { type: "string" },
    level: { oneOf: [{ const: 1, description: "One." }, { const: "two" }] },
    facts: { $ref: "#/$defs/Facts" },
  },
  required: ["title"],
  $defs: {
    Facts: {
      oneOf: [
        { type: "object", properties: { kind: { const: "file" }, path: { type: ["string", "null"] } }, required: ["kind"] },
        { type: "object", properties: { kind: { const: "debug" }, lines: { type: "integer" } }, required: ["kind", "lines"] },
      ],
    },
  },
};

/** A form that keeps what is typed, and what it last said. */
function Form({ schema, issues, on }: { schema: unknown; issues?: FormIssue[]; on?: (draft: Draft) => void }) {
  const [draft, setDraft] = useState<Draft>();
  on?.(draft);
  return <SchemaForm schema={schema} value={draft} onChange={setDraft} {...(issues && { issues })} idPrefix="f" label="Answer" />;
}

function filled(schema: unknown, issues?: FormIssue[]) {
  let last: Draft;
  render(<Form schema={schema} {...(issues && { issues })} on={(draft) => (last = draft)} />);
  return () => readForm(schema, last);
}

const type = (name: string, value: string) => fireEvent.change(screen.getByLabelText(name), { target: { value } });

describe("values and drafts", () => {
  it("brings every value that fits back as it was", () => {
    const values: unknown[] = [
      {},
      { text: "two\nlines", count: 4, ratio: 0.5, flag: false, kind: "b", tags: ["x", "y"], place: { x: 1 }, any: { deep: [null] } },
      { either: [1.5, 1000], said: { a: 1 }, rows: [{}, { x: 2 }], toString: "own", level: "two" },
      { said: "{a", facts: { kind: "file", path: "a.md" } },
      { facts: { kind: "debug", lines: 3 }, ratio: null, level: 1 },
      { said: "42" },
    ];
    for (const value of values) {
      expect(readForm(SHAPES, draftOf(SHAPES, value))).toEqual({ ok: true, value });
      expect(fits(SHAPES, value)).toBe(true);
      expect(readForm(SHAPES, JSON.parse(JSON.stringify(draftOf(SHAPES, value)))), "a draft can be kept").toEqual({ ok: true, value });
    }
  });

  it("says where a form cannot show all of a value", () => {
    for (const value of [{ unknown: 1 }, { title: "" }, { tags: [] }, { kind: "c" }, { facts: { kind: "file", more: 1 } }, { title: 5 }]) {
      expect(fits(SHAPES, value), JSON.stringify(value)).toBe(false);
    }
  });

  it("never changes a number, and names each that it cannot hold", () => {
    expect(["9007199254740991", "1.50E+1", "0.1", "-0", "1e3", "0e9"].filter((text) => !exact(text))).toEqual([]);
    expect(["9007199254740993", "1e400", "1e-400", "-0.12345678901234567890"].filter(exact)).toEqual([]);
    expect(parseJson(`{"\\"1e999": "1e999", "n": 15}`)).toEqual({ ok: true, value: { '"1e999': "1e999", n: 15 } });
    const draft = { fields: [undefined, "t", "9007199254740993", "1e400", null, null, null, null, null, "[1e999]"] };
    const read = readForm(SHAPES, draft);
    expect(read.ok ? [] : read.issues.map((issue) => [issue.path, /[\d.e]{5,}/.exec(issue.message)?.[0]])).toEqual([
      [["count"], "9007199254740993"],
      [["ratio"], "1e400"],
      [["any"], "1e999"],
    ]);
  });

  it("sends what is required though empty, and leaves out what is not", () => {
    const inner = { type: "object", properties: { x: { type: "integer" } } };
    const schema = { properties: { a: inner, b: inner, l: { type: "array", items: {} }, m: { type: "array", items: {} } }, required: ["a", "l"] };
    expect(readForm(schema, undefined)).toEqual({ ok: true, value: { a: {}, l: [] } });
  });

  it("takes any schema: true, false, none at all, one that refers to itself", () => {
    const recursive = { properties: { next: { $ref: "#" }, name: { type: "string" } } };
    for (const schema of [true, false, null, undefined, {}, "odd", { $ref: "#" }, recursive]) {
      expect(fits(schema, { a: [1] }) || schema === recursive, JSON.stringify(schema)).toBe(true);
    }
    expect(fits(recursive, { name: "a", next: { name: "b", next: { next: { next: { any: 1 } } } } })).toBe(true);
  });
});

describe("the form", () => {
  it("labels every control with its property's name alone", () => {
    render(<Form schema={SHAPES} />);
    for (const name of Object.keys(SHAPES.properties).filter((name) => !["tags", "place", "rows"].includes(name))) {
      expect(screen.getByLabelText(name, { exact: true }), name).toBeTruthy();
    }
    expect(screen.getByLabelText("title").getAttribute("aria-required")).toBe("true");
    expect(screen.getByLabelText("text").tagName).toBe("TEXTAREA");
  });

  it("keeps what is typed as it is typed", () => {
    const read = filled(SHAPES);
    type("count", "9007199254740993");
    type("any", "{");
    expect(read().ok).toBe(false);
    expect((screen.getByLabelText("count") as HTMLInputElement).value).toBe("9007199254740993");
    expect((screen.getByLabelText("any") as HTMLTextAreaElement).value).toBe("{");
    type("count", "7");
    type("any", "[1]");
    expect(read()).toEqual({ ok: true, value: { count: 7, any: [1] } });
  });

  it("adds and removes rows and moves the focus along", () => {
    const read = filled(SHAPES);
    fireEvent.click(screen.getByLabelText("Add to tags"));
    expect(document.activeElement).toBe(screen.getByLabelText("tags 1"));
    type("tags 1", "home");
    fireEvent.click(screen.getByLabelText("Add to tags"));
    type("tags 2", "work");
    fireEvent.click(screen.getByLabelText("Remove tags 1"));
    expect(read()).toEqual({ ok: true, value: { tags: ["work"] } });
    expect(document.activeElement).toBe(screen.getByLabelText("Add to tags"));
    fireEvent.click(screen.getByLabelText("Remove tags 1"));
    expect(read()).toEqual({ ok: true, value: {} });
  });

  it("keeps what was typed into one form of a choice while another is looked at", () => {
    const read = filled(SHAPES);
    type("facts", "0");
    type("path", "a.md");
    type("facts", "1");
    type("lines", "5");
    expect(read()).toEqual({ ok: true, value: { facts: { kind: "debug", lines: 5 } } });
    type("facts", "0");
    expect(read()).toEqual({ ok: true, value: { facts: { kind: "file", path: "a.md" } } });
  });

  it("offers null where a value is required and may be null", () => {
    const read = filled({ properties: { a: { type: ["string", "null"] } }, required: ["a"] });
    fireEvent.click(screen.getByLabelText("Send null"));
    expect(read()).toEqual({ ok: true, value: { a: null } });
  });

  it("is one field where the schema is one value", () => {
    const read = filled({ enum: ["yes", "no"] });
    type("Answer", "1");
    expect(read()).toEqual({ ok: true, value: "no" });
  });

  it("shows issues at their fields, the rest above, and focuses the first", () => {
    const issues = [
      { path: ["place", "x"], message: "Expected a whole number." },
      { path: ["title"], message: "Required value is missing." },
      { path: ["nobody", 3], message: "Unknown." },
      { path: ["tags", 7], message: "Too many." },
    ];
    filled(SHAPES, issues);
    const title = screen.getByLabelText("title");
    expect(title.getAttribute("aria-invalid")).toBe("true");
    expect(document.getElementById(title.getAttribute("aria-describedby") ?? "")?.textContent).toBe("Required value is missing.");
    expect(screen.getByLabelText("x").getAttribute("aria-invalid")).toBe("true");
    expect(screen.getByRole("alert").textContent).toBe("nobody.3: Unknown.");
    expect(screen.getByText("Too many.").closest("[data-field]")?.getAttribute("data-field")).toBe("tags");
    expect(document.activeElement).toBe(screen.getByRole("alert"));
  });

  it("spells out what a schema would hide", () => {
    render(<SchemaForm schema={{ properties: { "a\u202eb": { type: "string" } } }} value={undefined} onChange={vi.fn()} idPrefix="f" />);
    expect(screen.getByLabelText("a⟨U+202E⟩b")).toBeTruthy();
  });
});
