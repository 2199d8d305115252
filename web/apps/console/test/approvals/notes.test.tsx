// @vitest-environment happy-dom
// What only the sandbox bounds is said to whoever decides, under the request.
import { cleanup, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { ApprovalDetail } from "../../src/pages/approvals/detail";
import { ApprovalPanel } from "../../src/pages/approvals/panel";
import { hub, log, SCENE_MS_MAX, show, shownRun, told } from "./scene";

vi.setConfig({ testTimeout: SCENE_MS_MAX });
afterEach(cleanup);

const NOTES = ["what `make` does is not looked into; only the sandbox bounds it", "<b>it can run\u202e what it fetches</b>"];
const SHOWN = NOTES.map((note) => note.replace("\u202e", "⟨U+202E⟩"));
const events = log("approved-for-the-run", { type: "run.approval.requested", nth: 1 }).map((event) =>
  event.type === "run.approval.requested" ? { ...event, payload: { ...(event.payload as object), notes: NOTES } } : event,
);
const lines = () => [...document.querySelectorAll(".exact__note")].map((line) => line.textContent?.trim());

it("in the run, each note as a line of plain text", async () => {
  const run = shownRun(events);
  await show(hub({ approval_show: () => ({ data: { approval: told(run.view, 0) } }) }).client, <ApprovalPanel run={run} />);
  expect(lines()).toEqual(SHOWN);
});

it("in the inbox, also where only the hub has told of it", async () => {
  const approval = told(shownRun(events).view, 0, { notes: NOTES });
  await show(hub({ approval_show: () => ({ data: { approval } }) }).client, <ApprovalDetail id={String(approval["id"])} changed={0} />);
  expect(await screen.findByText(/make/, { selector: ".exact__note" })).toBeTruthy();
  expect(lines()).toEqual(SHOWN);
});
