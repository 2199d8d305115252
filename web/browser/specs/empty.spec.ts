// Where nothing is yet, the page says what belongs there and teaches the next command, which is one that the program has.
// clause: C20
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "@playwright/test";
import { binary, Hub } from "../support/hub.ts";
import { contextOf, logIn } from "../support/session.ts";
import { expect, test } from "../support/test.ts";
import { words } from "../support/words.ts";

/** The words of a command before its own arguments. */
function subcommand(command: string): string[] {
  const [program, ...rest] = command.split(" ");
  expect(program).toBe("runyard");
  const end = rest.findIndex((word) => !/^[a-z]+$/.test(word));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The page says so under this heading, and teaches this command. */
async function teaches(page: Page, title: string, command: string): Promise<void> {
  const place = page.locator(".empty", { has: page.getByRole("heading", { name: words(title), exact: true }) });
  await expect(place.getByRole("group", { name: words("common.command") })).toHaveText(`$ ${command}`);
  await expect(place.getByRole("button", { name: words("common.copyCommand") })).toBeVisible();
  await promisify(execFile)(binary(), [...subcommand(command), "--help"]);
}

/** As if the hub had none of what this action lists. */
async function without(page: Page, action: string, data: Record<string, unknown>): Promise<void> {
  const json = { ok: true, data, artifacts: [], logs: [], meta: { action, surface: "react" } };
  await page.route(new RegExp(`/actions/${action}/invoke`), (route) => route.fulfill({ json }));
}

test("c20 every page of an empty hub teaches the next command", async ({ browser }) => {
  const hub = await Hub.start(async () => "");
  const context = await contextOf(browser, await logIn(await hub.command("open", "--print")), { locale: "en-GB", baseURL: hub.url });
  try {
    const page = await context.newPage();
    for (const [path, title, command] of [
      ["/runs", "runs.first.title", `runyard run "${words("runs.first.task")}"`],
      ["/runs/new", "runs.create.noWorkspace.title", "runyard workspaces add ."],
      ["/approvals", "approvals.emptyTitle", `runyard run "Say what this project is" --agent demo`],
      [`/approvals/apr_${"0".repeat(32)}`, "approvals.gone", "runyard approvals list"],
      [`/runs/run_${"0".repeat(32)}`, "run.refusedTitle", `runyard runs show run_${"0".repeat(32)}`],
      ["/edges", "system.workspaces.none", "runyard workspaces add ."],
      ["/edges", "system.sessions.none", `runyard run "Fix the typo in docs/config.md"`],
      ["/policy", "policy.none", "runyard policy add allow shell 'cargo test *'"],
      ["/dev", "dev.choose", "runyard actions"],
    ] as const) {
      await page.goto(path);
      await teaches(page, title, command);
    }
    // What a hub has from its first moment is taken away on the way.
    await without(page, "agent_list", { agents: [] });
    await without(page, "edge_list", { edges: [] });
    await without(page, "audit_list", { entries: [] });
    for (const [path, title, command] of [
      ["/agents", "system.agents.none", "runyard init"],
      ["/edges", "system.edges.none", "runyard up"],
      ["/audit", "audit.none", "runyard audit show"],
    ] as const) {
      await page.goto(path);
      await teaches(page, title, command);
    }
  } finally {
    await context.close();
    await hub.remove();
  }
});

test("c20 the parts of a run that has nothing to show teach the command that looks for it", async ({ yard, page, wire }) => {
  const id = await yard.start("waits");
  await yard.api.until(id, "running");
  await page.goto(`/runs/${id}/artifacts`);
  await teaches(page, "artifacts.none", `runyard artifacts add ${id} report.md`);
  await page.goto(`/runs/${id}/diff`);
  await teaches(page, "diff.none.title", `runyard diff ${id}`);
  wire.holdAt(id, 0);
  await page.goto(`${wire.url}/runs/${id}/transcript`);
  await teaches(page, "run.transcriptEmpty", `runyard runs events ${id}`);
  await yard.api.steer(id, "go on");
});

test("c20 a hub that is away is named, with the command that starts it", async ({ browser }) => {
  const hub = await Hub.start(async () => "");
  const context = await contextOf(browser, await logIn(await hub.command("open", "--print")), { locale: "en-GB", baseURL: hub.url });
  try {
    const page = await context.newPage();
    await page.route(/\/api\//, (route) => route.abort());
    await page.goto("/runs");
    await teaches(page, "runs.away.title", "runyard up");
  } finally {
    await context.close();
    await hub.remove();
  }
});
