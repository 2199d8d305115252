// What somebody can send when they ask for help. Codes, ids and versions only: no payload, no path, no secret.
import { boot } from "../app/boot";

/** The diagnostics as text. What is undefined is left out. */
export function diagnostics(facts: Record<string, string | number | undefined>): string {
  const lines = Object.entries({
    ...facts,
    page: location.pathname,
    runyard: boot().version,
    browser: navigator.userAgent,
    at: new Date().toISOString(),
  });
  return lines
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}
