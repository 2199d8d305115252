// Both packages as they are published, in an app of somebody else that reaches the hub through its own server's proxy.
// clause: A04
// clause: A20
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { serveApp } from "../../scripts/packed.mjs";
import { expect, test } from "../support/test.ts";
import { Watch } from "../support/watch.ts";
import { Yard } from "../support/yard.ts";

/** A port that is free now. */
function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => done(port));
    });
  });
}

test("a20 an app with the packed packages logs in, calls, confirms, cancels and follows a run", async ({ browser }) => {
  const port = await freePort();
  const yard = await Yard.start({ more: `\n[server]\norigins = ["http://127.0.0.1:${port}"]\n` });
  const app = await serveApp({ hub: yard.hub.url, port });
  const context = await browser.newContext({ baseURL: app.url });
  const watch = await Watch.over(context, app.url);
  watch.expect(/status of 40[149]/);
  try {
    const page = await context.newPage();
    await page.goto(`/#${new URL(await yard.link()).hash.slice(1)}`);
    await expect(page.getByRole("heading", { name: "owner" })).toBeVisible();
    const calls: string[] = [];
    page.on("request", (request) => request.url().endsWith("/invoke") && calls.push(request.url()));
    const open = async (action: string, input: unknown): Promise<void> => {
      await page.goto(`/?action=${action}&input=${encodeURIComponent(JSON.stringify(input))}`);
      await page.getByRole("button", { name: `Call ${action}` }).click();
    };
    const status = page.locator("output");
    const said = async (): Promise<Record<string, unknown>> => JSON.parse((await page.locator("pre").textContent()) ?? "null");

    await open("task_create", { title: "Mend the pier" });
    await expect(status).toHaveText("ok");
    const { id } = await said();
    await open("task_create", {});
    await expect(status).toHaveText("error");
    expect((await said())["code"]).toBe("VALIDATION_ERROR");

    calls.length = 0;
    await open("task_delete", { id });
    await expect(status).toHaveText("confirming");
    expect(calls.filter((url) => url.includes("task_delete")), "nothing is sent before somebody confirms").toEqual([]);
    await page.getByRole("button", { name: "Dismiss" }).click();
    await expect(status).toHaveText("idle");
    await page.getByRole("button", { name: "Call task_delete" }).click();
    await page.getByRole("button", { name: "Confirm task_delete" }).click();
    await expect(status).toHaveText("ok");
    expect(calls.filter((url) => url.includes("task_delete"))).toHaveLength(1);

    const run = await yard.start("waits");
    await yard.api.until(run, "running");
    const streams: string[] = [];
    page.on("request", (request) => request.url().endsWith(`/${run}/stream`) && streams.push(request.url()));
    await page.goto(`/?run=${run}`);
    await expect(page.getByText(/^running, .* live$/)).toBeVisible();
    await yard.api.steer(run, "go on");
    await expect(page.getByText(/^completed, .* ended$/)).toBeVisible();
    expect(streams, "mounting twice, as React does in development, leaves one stream").toHaveLength(1);
  } finally {
    await context.close();
    await app.close();
    await yard.hub.remove();
  }
  expect(watch.unexpected()).toEqual([]);
});
