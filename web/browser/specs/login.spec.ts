// Logging in by a one-time link, and what is left for a stranger.
// clause: A22
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "../support/test.ts";
import { Watch } from "../support/watch.ts";
import { words } from "../support/words.ts";

test.describe("a link", () => {
  test("logs in once, and its code stays nowhere", async ({ yard, browser }) => {
    const context = await browser.newContext({ locale: "en-GB" });
    const watch = await Watch.over(context, yard.hub.url);
    watch.expect(/status of 40[19]/);
    const page = await context.newPage();
    const link = await yard.link();
    await page.goto(link);
    await page.waitForURL((url) => url.pathname.startsWith("/runs"));
    await expect(page.getByRole("heading", { level: 1, name: words("runs.title") })).toBeVisible();
    expect(page.url()).not.toContain(new URL(link).hash.slice(1));
    const [cookie] = (await context.cookies(yard.hub.url)).filter(({ name }) => name.startsWith("runyard_session"));
    expect([cookie?.httpOnly, cookie?.sameSite, cookie?.path]).toEqual([true, "Strict", "/"]);
    expect(await page.evaluate(() => document.cookie)).not.toContain("session");

    const again = await browser.newContext({ locale: "en-GB" });
    const second = await again.newPage();
    await second.goto(link);
    await expect(second.getByRole("main")).toContainText(/used/);
    expect(second.url()).not.toContain(new URL(link).hash.slice(1));
    // A fresh link in the same tab changes only what stands behind the number sign.
    const fresh = new URL(await yard.link());
    await second.evaluate((hash) => (location.hash = hash), fresh.hash);
    await second.waitForURL((url) => url.pathname.startsWith("/runs"));
    expect(second.url()).not.toContain(fresh.hash.slice(1));
    await again.close();
    await context.close();
    expect(watch.unexpected()).toEqual([]);
  });

  test("leads to the page that was asked for", async ({ yard, browser }) => {
    const id = await yard.start("short");
    const context = await browser.newContext({ locale: "en-GB" });
    const page = await context.newPage();
    await page.goto(`${yard.hub.url}/runs/${id}`);
    await expect(page.getByText("runyard open").first()).toBeVisible();
    const link = new URL(await yard.link());
    await page.goto(`${link.origin}/login?next=/runs/${id}${link.hash}`);
    await page.waitForURL(new RegExp(`/runs/${id}`));
    await expect(page.locator('[data-state="completed"]').first()).toBeVisible();
    await context.close();
  });

  test("never leads to another host", async ({ yard, browser }) => {
    for (const next of ["//evil.example/", "https://evil.example/", "/\\evil.example/", "javascript:alert(1)"]) {
      const context = await browser.newContext({ locale: "en-GB" });
      const page = await context.newPage();
      const link = new URL(await yard.link());
      await page.goto(`${link.origin}/login?next=${encodeURIComponent(next)}${link.hash}`);
      await page.waitForURL((url) => url.pathname.startsWith("/runs"));
      expect(new URL(page.url()).origin).toBe(yard.hub.url);
      await context.close();
    }
  });
});

test("whoever logs out is out, also in another tab", async ({ yard, browser }) => {
  const context = await browser.newContext({ locale: "en-GB" });
  const [page, other] = [await context.newPage(), await context.newPage()];
  await page.goto(await yard.link());
  await page.waitForURL((url) => url.pathname.startsWith("/runs"));
  await other.goto(`${yard.hub.url}/approvals`);
  await expect(other.getByRole("heading", { level: 1 })).toBeVisible();
  await page.goto(`${yard.hub.url}/settings`);
  await page.getByRole("button", { name: words("common.settings.logOut") }).click();
  await page.waitForURL(/\/login/);
  await other.reload();
  await expect(other.getByText("runyard open").first()).toBeVisible();
  await context.close();
});

// Another server of this machine is sent our cookie by the browser, and can do nothing with it.
test("a neighbour cannot use the cookie", async ({ yard, browser }) => {
  const context = await browser.newContext();
  const own = await context.newPage();
  await own.goto(await yard.link());
  await own.waitForURL((url) => url.pathname.startsWith("/runs"));
  const page = await context.newPage();
  let stolen = "";
  const neighbour = createServer((request, response) => {
    stolen ||= request.headers.cookie ?? "";
    response.setHeader("content-type", "text/html").end("<!doctype html><title>neighbour</title>");
  });
  await new Promise<void>((done) => neighbour.listen(0, "127.0.0.1", done));
  await page.goto(`http://127.0.0.1:${(neighbour.address() as AddressInfo).port}/`);
  expect(stolen, "the browser hands it out: ports are nothing to cookies").toMatch(/runyard_session_\w*=[0-9a-f]{64}/);
  const targets = ["/dev/api/actions/task_list/invoke", "/api/v1/actions/run_list/invoke"].map((path) => `${yard.hub.url}${path}`);
  for (const target of targets) {
    const fromPage = await page.evaluate(async (to) => {
      const answer = fetch(to, { method: "POST", credentials: "include", mode: "no-cors", body: `{"input":{}}` });
      return answer.then(({ status }) => status, () => 0);
    }, target);
    expect(fromPage).toBe(0);
    const headers = { cookie: stolen, origin: yard.hub.url, "sec-fetch-site": "same-origin", "content-type": "application/json" };
    for (const key of ["", "0".repeat(64)]) {
      const forged = await fetch(target, { method: "POST", headers: { ...headers, "x-runyard-page": key }, body: `{"input":{}}` });
      expect(forged.status).toBe(401);
    }
  }
  neighbour.closeAllConnections();
  neighbour.close();
  await context.close();
});
