// What no page may ever do: complain in the browser's console, break its Content-Security-Policy, or talk to another host.
import type { BrowserContext, Page } from "@playwright/test";

export class Watch {
  readonly complaints: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #hosts = new Set<string>();

  /** Watches every page of a context, which may only talk to these addresses. */
  static async over(context: BrowserContext, ...urls: string[]): Promise<Watch> {
    const watch = new Watch();
    for (const url of urls) watch.allow(url);
    await context.exposeBinding("__runyardViolation", (_source, text: string) => void watch.complaints.push(`CSP: ${text}`));
    await context.addInitScript(() => {
      const tell = (window as unknown as { __runyardViolation(text: string): void }).__runyardViolation;
      addEventListener("securitypolicyviolation", (event) => tell(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}`));
    });
    context.on("page", (page) => watch.#look(page));
    return watch;
  }

  allow(url: string): void {
    this.#hosts.add(new URL(url).host);
  }

  /** A complaint that the test itself provokes, such as a connection that it cuts. */
  expect(pattern: RegExp): void {
    this.#expected.push(pattern);
  }

  /** What there is to complain of. */
  unexpected(): string[] {
    return this.complaints.filter((complaint) => !this.#expected.some((pattern) => pattern.test(complaint)));
  }

  #look(page: Page): void {
    page.on("pageerror", (error) => this.complaints.push(`page: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.complaints.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && !this.#hosts.has(url.host)) this.complaints.push(`foreign host: ${request.url()}`);
      if (url.protocol === "data:") this.complaints.push(`data: URL requested by ${request.resourceType()}`);
    });
  }
}
