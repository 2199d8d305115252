// The page on which actions are called by hand, as somebody who uses it sees it.
import { expect, type Locator, type Page } from "@playwright/test";
import { words } from "./words.ts";

/** Commands as actions: one with everything that a form can have, one with what is rare in a schema, one that reports as it goes, one that
 * goes on until it is stopped. */
export function actions(pidFile: string): string {
  return `
[actions.shapes]
description = "Gives its input back."
command = ["cat"]
[actions.shapes.input]
type = "object"
additionalProperties = false
[actions.shapes.input.properties]
text = { type = "string", description = "Some lines of text." }
count = { type = "integer", minimum = 1, default = 3, description = "How often." }
ratio = { type = "number" }
flag = { type = "boolean" }
kind = { enum = ["a", "b"] }
tags = { type = "array", items = { type = "string" } }
place = { type = "object", properties = { x = { type = "integer" }, y = { type = "integer" } } }
any = {}

[actions.odd]
description = "Has an odd schema.\\U000E0041\\u200B"
command = ["cat"]
[actions.odd.input]
type = "object"
[actions.odd.input.properties]
either = { anyOf = [true, { type = "integer" }], description = "Anything at all." }
never = false
said = { anyOf = [{ type = "string" }, { type = "object" }] }
big = { type = "integer" }
ratio = { type = ["number", "null"] }
rows = { type = "array", items = { type = "object", properties = { x = { type = "integer" } } } }
toString = { type = "string" }

[actions.steps]
description = "Does something in steps."
command = ["sh", "-c", '''
cat >/dev/null
echo 'first <b>' >&2
echo '{"type": "progress", "percent": 50, "message": "half"}' >&2
echo '{"type": "artifact", "artifact": {"name": "report.txt"}}' >&2
echo second >&2
echo 9007199254740993
''']

[actions.wait]
description = "Goes on until it is stopped."
command = ["sh", "-c", 'echo $$ > ${pidFile}; echo waiting >&2; exec sleep 600']
`;
}

export class DevPage {
  readonly page: Page;
  /** How many calls were sent. */
  calls = 0;

  constructor(page: Page) {
    this.page = page;
    page.on("request", (request) => (this.calls += request.url().endsWith("/invoke") && request.url().includes("/dev/api/") ? 1 : 0));
  }

  async open(action: string): Promise<void> {
    await this.page.goto(`/dev/${action}`);
    await expect(this.page.locator("#dev-name")).toHaveText(action);
  }

  get filter(): Locator {
    return this.page.getByRole("searchbox", { name: words("dev.filter") });
  }

  get result(): Locator {
    return this.page.getByRole("region", { name: words("dev.result") });
  }

  get log(): Locator {
    return this.page.getByRole("log", { name: words("dev.log") });
  }

  get run(): Locator {
    return this.page.locator("form [data-call]");
  }

  /** A field by its name, with all that belongs to it. */
  field(name: string): Locator {
    return this.page.locator(`[data-field="${name}"]`).first();
  }

  get json(): Locator {
    return this.page.getByRole("textbox", { name: words("dev.inputJson") });
  }

  /** Every complaint about the input. */
  get issues(): Locator {
    return this.page.locator(".issue");
  }

  async show(mode: "Form" | "JSON"): Promise<void> {
    await this.page.getByRole("group", { name: words("dev.inputAs") }).getByRole("button", { name: mode }).click();
  }

  /** Calls it, until it says that. */
  async runTo(text: string): Promise<void> {
    await this.run.click();
    await this.says(text);
  }

  async says(text: string): Promise<void> {
    await expect(this.result.getByRole("status")).toContainText(text);
  }

  /** The text of the envelope, with its numbers as they came. */
  async envelopeText(): Promise<string> {
    return (await this.result.locator("pre").last().textContent()) ?? "";
  }

  async data(): Promise<unknown> {
    return JSON.parse(await this.envelopeText()).data;
  }
}
