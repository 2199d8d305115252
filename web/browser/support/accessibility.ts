// axe in the page itself, put there by the driver and not by the page, so that its Content-Security-Policy stays as it is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

interface Axe {
  run(context: Document, options: unknown): Promise<{ violations: Violation[] }>;
}

/** What is wrong with the page as it is now; nothing, if it is as it should be. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(`if (!window.axe) { ${SOURCE} }`);
  const found = await page.evaluate(async (tags) => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations } = await axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"], iframes: false });
    return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) }));
  }, TAGS);
  return found.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${impact}): ${html.slice(0, 200)} ${failureSummary.replaceAll("\n", " ")}`),
  );
}
