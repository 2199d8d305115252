// Both packages as they are published, in an app of somebody else that reaches the hub through its own server's proxy.
// clause: A04
// clause: A20
// clause: A21
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveApp } from "../../scripts/packed.mjs";
import { eventually } from "../support/api.ts";
import { actions } from "../support/dev-page.ts";
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

const PID_FILE = join(tmpdir(), `runyard-packed-wait-${process.pid}`);

// Served as somebody works on it, where React mounts everything twice, and built, where it does not.
for (const mode of ["dev", "preview"] as const) {
  test(`a20 an app with the packed packages logs in, calls, confirms, cancels and follows a run, in ${mode} mode`, async ({ browser }) => {
    const port = await freePort();
    const yard = await Yard.start({ more: `${actions(PID_FILE)}\n[server]\norigins = ["http://127.0.0.1:${port}"]\n` });
    const app = await serveApp({ hub: yard.hub.url, port, mode });
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

      await open("wait", {});
      const lives = await eventually("its program runs", async () => {
        const pid = existsSync(PID_FILE) ? readFileSync(PID_FILE, "utf8").trim() : "";
        return pid !== "" && ((): boolean => existsSync(`/proc/${pid}`));
      });
      expect(lives()).toBe(true);
      await page.getByRole("button", { name: "Cancel" }).click();
      await expect(status).toHaveText("error");
      expect((await said())["code"]).toBe("CANCELLED");
      await eventually("the program is stopped", async () => !lives());

      const run = await yard.start("waits");
      await yard.api.until(run, "running");
      const streams: string[] = [];
      page.on("request", (request) => request.url().endsWith(`/${run}/stream`) && streams.push(request.url()));
      await page.goto(`/?run=${run}`);
      await expect(page.getByText(/^running, .* live$/)).toBeVisible();
      await yard.api.steer(run, "go on");
      await expect(page.getByText(/^completed, .* ended$/)).toBeVisible();
      expect(streams, "mounted once or twice, it is one stream").toHaveLength(1);
    } finally {
      await context.close();
      await app.close();
      await yard.hub.remove();
      rmSync(PID_FILE, { force: true });
    }
    expect(watch.unexpected()).toEqual([]);
  });
}
