// A run's page as its reader sees it: by roles and names, not by how it is built.
import { expect, type Locator, type Page } from "@playwright/test";
import type { Event } from "./api.ts";
import { type Language, words } from "./words.ts";

export class RunPage {
  readonly page: Page;
  readonly id: string;
  readonly #base: string;

  constructor(page: Page, id: string, base = "") {
    this.page = page;
    this.id = id;
    this.#base = base;
  }

  /** Opens the run, or a part of its page. */
  static async open(page: Page, id: string, { base = "", part = "" }: { base?: string; part?: string } = {}): Promise<RunPage> {
    const run = new RunPage(page, id, base);
    await run.go(part);
    return run;
  }

  async go(part = ""): Promise<void> {
    await this.page.goto(`${this.#base}/runs/${this.id}${part}`);
    await this.head.waitFor();
  }

  get head(): Locator {
    return this.page.getByRole("main").locator("header").first();
  }

  /** The state's pill in the head. */
  get pill(): Locator {
    return this.head.locator(".pill[data-state]");
  }

  get link(): Locator {
    return this.head.locator("[data-link]");
  }

  get feed(): Locator {
    return this.page.getByRole("feed");
  }

  get rows(): Locator {
    return this.feed.getByRole("article");
  }

  /** Where a person decides. */
  panel(language: Language = "en"): Locator {
    return this.page.getByRole("region", { name: words("approvals.panel", {}, language) });
  }

  get failure(): Locator {
    return this.page.locator("section[data-code]");
  }

  /** The state is said with a word, an icon and the time of the last event. */
  async shows(state: string, language: Language = "en"): Promise<void> {
    await expect(this.pill).toHaveAttribute("data-state", state);
    await expect(this.pill).toHaveText(words(`common.state.${state}`, {}, language));
    await expect(this.pill.locator("svg")).toHaveCount(1);
  }

  /** The head says when the last event was, and which it is. */
  async showsLast(event: Pick<Event, "sequence" | "timestamp">): Promise<void> {
    await expect(this.head.locator(`time[datetime="${event.timestamp}"]`).first()).toBeVisible();
    await expect(this.head.getByText(`#${event.sequence}`, { exact: true })).toBeVisible();
  }

  /** The number of the last event that the head shows. */
  async lastSequence(): Promise<number> {
    const text = await this.head.getByText(/^#\d+$/).first().textContent();
    return Number(text?.slice(1));
  }

  /** Shows the timeline in another way, in the page as it is. */
  async view(name: "compact" | "full" | "json"): Promise<void> {
    const view = this.page.getByRole("group", { name: words("run.viewLabel") }).getByRole("button", { name: words(`run.view.${name}`), exact: true });
    await view.click();
    await expect(view).toHaveAttribute("aria-pressed", "true");
  }

  /** A link of the run's own navigation. */
  tab(name: string): Locator {
    return this.page.getByRole("navigation", { name: "Run" }).getByRole("link", { name });
  }
}
