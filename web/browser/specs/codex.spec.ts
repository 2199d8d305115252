// The real codex, against a model provider on this machine: watched, approved and applied in the console.
// clause: B02
// clause: C12
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { codexYard } from "../support/codex.ts";
import { RunPage } from "../support/run-page.ts";
import { contextOf, logIn } from "../support/session.ts";
import { expect, test } from "../support/test.ts";
import { Watch } from "../support/watch.ts";

test("b02 a real codex run is approved and applied in the browser", async ({ browser }) => {
  const { yard, stop } = await codexYard();
  const context = await contextOf(browser, await logIn(await yard.link()), { locale: "en-GB", baseURL: yard.hub.url });
  const watch = await Watch.over(context, yard.hub.url);
  try {
    const id = await yard.start("codex", "[[scenario:shell echo ran >> runs.txt]] please");
    const run = await RunPage.open(await context.newPage(), id);
    await run.shows("needs_approval");
    await expect(run.panel()).toContainText("echo ran >> runs.txt");
    await run.panel().getByRole("button", { name: /^Run shell/ }).click();
    await run.panel().getByRole("button", { name: /^Apply 1 file/ }).click();
    await run.shows("completed");
    expect(await readFile(join(yard.workspace, "runs.txt"), "utf8")).toBe("ran\n");
    await expect(run.feed).toContainText("The command has run.");
  } finally {
    await context.close();
    await stop();
  }
  expect(watch.unexpected()).toEqual([]);
});
