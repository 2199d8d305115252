// Logs people in, once per hub, and gives their browser contexts.
import { request } from "node:http";
import type { Browser, BrowserContext, BrowserContextOptions } from "@playwright/test";

/** What a browser keeps of a person who is logged in. */
export interface Session {
  cookie: { name: string; value: string };
  pageKey: string;
}

/** Uses a one-time link, as the page of it would. */
export function logIn(link: string): Promise<Session> {
  const { origin, port, hash } = new URL(link);
  const body = JSON.stringify({ code: hash.slice(1) });
  const headers = { origin, "sec-fetch-site": "same-origin", "content-type": "application/json" };
  return new Promise((done, failed) => {
    const asked = request({ host: "127.0.0.1", port, path: "/login", method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => {
        const [name, value] = (answer.headers["set-cookie"]?.[0] ?? "").split(";")[0]?.split("=") ?? [];
        const pageKey: unknown = answer.statusCode === 200 ? JSON.parse(text).data.pageKey : undefined;
        if (name === undefined || value === undefined || typeof pageKey !== "string") return failed(new Error(`no session: ${text}`));
        done({ cookie: { name, value }, pageKey });
      });
    });
    asked.on("error", failed);
    asked.end(body);
  });
}

/** A browser of somebody who is logged in, at whichever of our addresses. */
export async function contextOf(browser: Browser, session: Session, options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  await context.addCookies([{ ...session.cookie, domain: "127.0.0.1", path: "/", httpOnly: true, sameSite: "Strict" }]);
  await context.addInitScript((key) => {
    // An empty page and a frame without an origin have no storage.
    if (origin.startsWith("http")) localStorage.setItem("runyard.page", key);
  }, session.pageKey);
  return context;
}
