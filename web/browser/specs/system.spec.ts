// Policy, audit, agents, edges and artifacts: what is looked at changes nothing, and what takes effect says so first.
// clause: C14
// clause: C20
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { violations } from "../support/accessibility.ts";
import { expect, test } from "../support/test.ts";

test("a rule is looked at before it is stored, and asks before it is removed", async ({ page, yard }) => {
  const rules = async () => (await yard.api.get<{ policy: { stored: { id: string; match?: string }[] } }>("/policy")).policy.stored;
  await page.goto("/policy");
  await page.getByRole("group", { name: "What it does" }).getByRole("button", { name: "Deny" }).click();
  await page.getByLabel("Match", { exact: false }).first().fill("git push *");
  const effect = page.getByRole("button", { name: "Store rule: deny shell git push *" });
  await expect(effect).toHaveCount(0);
  await page.getByRole("button", { name: /^See what it changes/ }).click();
  await expect(page.getByText("commands that begin with")).toBeVisible();
  expect((await rules()).filter(({ match }) => match === "git push *")).toEqual([]);
  await page.getByLabel("Match", { exact: false }).first().fill("git push origin");
  await expect(effect, "another rule is to be looked at anew").toHaveCount(0);
  await page.getByLabel("Match", { exact: false }).first().fill("git push *");
  await effect.click();
  const row = page.getByRole("row", { name: /git push \*/ });
  await expect(row).toContainText("Stored");
  const [rule] = (await rules()).filter(({ match }) => match === "git push *");

  await row.getByRole("button", { name: "Remove rule…" }).click();
  const dialog = page.getByRole("dialog");
  const remove = dialog.getByRole("button", { name: "Remove rule: deny shell git push *" });
  await expect(remove).toHaveAttribute("aria-disabled", "true");
  await dialog.getByRole("textbox").fill(rule?.id ?? "");
  await remove.click();
  await expect(row).toHaveCount(0);
  expect((await rules()).filter(({ match }) => match === "git push *")).toEqual([]);
});

test("a rule that is wrong says so at its field and keeps what was typed", async ({ page }) => {
  await page.goto("/policy");
  await page.getByLabel("Ends").fill("tomorrow");
  await page.getByRole("button", { name: /^See what it changes/ }).click();
  await expect(page.getByText("Expected a time as in")).toBeVisible();
  await expect(page.getByLabel("Ends")).toHaveValue("tomorrow");
  await expect(page.getByLabel("Ends")).toHaveAttribute("aria-invalid", "true");
});

test("a request is judged part by part, and nobody is asked", async ({ page, yard }) => {
  const open = async () => (await yard.api.get<{ approvals: { id: string }[] }>("/approvals")).approvals.map(({ id }) => id);
  const before = await open();
  await page.goto("/policy");
  await page.getByRole("button", { name: "Test a request" }).click();
  await page.getByRole("textbox", { name: "Command" }).fill("ls && git push");
  await page.getByRole("button", { name: /^Judge it/ }).click();
  const result = page.getByRole("region", { name: "How it would be judged" });
  await expect(result.getByRole("listitem")).toHaveCount(2);
  expect(await open()).toEqual(before);
});

test("a workspace is added and removed, each after asking", async ({ page, yard }) => {
  const folder = join(yard.hub.folder, "boathouse");
  await mkdir(folder, { recursive: true });
  await page.goto("/edges");
  await page.getByRole("button", { name: "Add workspace…" }).click();
  await expect(page.getByText("Give the directory as an absolute path.")).toBeVisible();
  await page.getByLabel("Directory").fill(folder);
  await page.getByRole("button", { name: "Add workspace…" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.locator("pre")).toHaveText(folder);
  await dialog.getByRole("button", { name: "Do not allow it" }).click();
  await page.getByRole("button", { name: "Add workspace…" }).click();
  await dialog.getByRole("button", { name: `Allow runs on ${folder}` }).click();
  await expect(page.getByRole("rowheader", { name: "boathouse" })).toBeVisible();
  await page.getByRole("button", { name: "Remove boathouse…" }).click();
  await dialog.getByRole("button", { name: "Remove workspace: boathouse" }).click();
  await expect(page.getByRole("rowheader", { name: "boathouse" })).toHaveCount(0);
});

test("a backend is checked, and what was found stays", async ({ page }) => {
  await page.goto("/agents");
  const agent = page.getByRole("article", { name: "short", exact: true }).filter({ hasNotText: "Check backend" });
  await expect(agent).toContainText("Not checked yet");
  await page.getByRole("button", { name: "Check backend: short" }).click();
  const panel = page.getByRole("article", { name: "short", exact: true }).filter({ hasText: "Check backend" });
  await expect(panel.getByText(/Checked on edge/)).toBeVisible();
  await expect(panel.getByText("Ready")).toBeVisible();
  await expect(agent.getByText("Ready"), "what it is for says so, too").toBeVisible();
});

test("the audit is read, filtered by its address, and verified", async ({ page }) => {
  await page.goto("/audit?type=audit.login");
  await expect(page.getByRole("table").getByText("Login").first()).toBeVisible();
  await expect(page.getByRole("table").getByText("Record begins")).toHaveCount(0);
  await page.getByRole("button", { name: "Clear filters" }).click();
  await expect.poll(() => new URL(page.url()).search).toBe("");
  await page.getByRole("button", { name: "Verify the audit" }).click();
  await expect(page.getByText(/The chain is whole: \d+ entries verified/)).toBeVisible();
  // It is the last of them all, and only those in sight are drawn.
  await page.getByRole("combobox", { name: "What" }).selectOption("Record begins");
  await expect(page.getByRole("table").getByText("Record begins")).toBeVisible();
  await page.getByRole("button", { name: "Show entry #1", exact: true }).click();
  await expect(page.getByRole("complementary", { name: "Entry #1" })).toContainText("installation.opened");
  expect(await violations(page)).toEqual([]);
});

test("artifacts are shown as far as that is safe, and accept nothing", async ({ page, yard, watch }) => {
  // The script of the page in the frame is kept from running, and the browser says so.
  watch.expect(/Blocked script execution in 'blob:/);
  const id = await yard.start("waits");
  const add = (name: string, text: string) => yard.api.post(`/runs/${id}/artifacts`, { name, text, facts: { kind: "file" } });
  await add("report.md", "# Report\n\n<script>document.title = 'evil'</script> ![x](https://evil.example/x.png)");
  await add("page.html", "<!doctype html><h1>Built</h1><script>parent.document.title = 'evil'; document.body.textContent = 'ran'</script>");
  await add("build.log", Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`).join("\n"));
  await page.goto(`/runs/${id}/artifacts`);
  await expect(page.getByText("Looking at artifacts accepts nothing.")).toBeVisible();
  await expect(page.locator(".viewer .md")).toContainText("<script>");
  await expect(page.locator(".viewer img")).toHaveCount(0);

  await page.getByRole("link", { name: /page\.html/ }).click();
  const frame = page.locator("iframe");
  await expect(frame).toHaveAttribute("sandbox", "");
  await expect(page.frameLocator("iframe").getByRole("heading", { name: "Built" })).toBeVisible();

  await expect(page.frameLocator("iframe").getByText("ran", { exact: true })).toHaveCount(0);
  expect(await page.title()).not.toBe("evil");

  await page.getByRole("link", { name: /build\.log/ }).click();
  await expect(page.locator(".line").first()).toContainText("line 1");
  expect(await page.locator(".line").count()).toBeLessThan(200);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  expect((await download).suggestedFilename()).toBe("build.log");
  expect(await violations(page)).toEqual([]);
});

test("a run's audit names decisions and the commands that check it without a hub", async ({ page, yard }) => {
  const id = await yard.start("waits");
  await page.goto(`/runs/${id}/audit`);
  await expect(page.getByText(`runyard audit export ${id}`)).toBeVisible();
  await expect(page.getByText(`runyard audit verify ${id}.audit.jsonl`)).toBeVisible();
  expect(await violations(page)).toEqual([]);
});
