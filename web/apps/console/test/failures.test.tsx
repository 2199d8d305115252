// @vitest-environment happy-dom
// C16: whatever shows a failure names it, and what to do first, as exactly as is known: by the cause, else the kind, else the code.
import { foldRun, type Row, type RunEvent, type RunView } from "@runyard/react";
import { cleanup, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { maybe, setLanguage, type Language } from "../src/i18n";
// Loaded before the tests, so that switching to it waits for nothing.
import "../src/i18n/zh";
import { DetailContent } from "../src/pages/run/detail/content";
import { EndCard } from "../src/pages/run/end-card";
import type { ShownRun } from "../src/pages/run/run-context";
import { EventRow } from "../src/pages/run/timeline/row";
import { Transcript } from "../src/pages/run/transcript";
import { transcriptMarkdown } from "../src/pages/run/transcript-text";

// Nothing here is gone to.
vi.mock("@tanstack/react-router", () => ({
  Link: ({ children }: { children?: ReactNode }) => <a>{children}</a>,
  useRouter: () => ({}),
}));

afterEach(async () => {
  cleanup();
  await setLanguage("en");
});

const AT = "2026-11-16T08:00:00.000Z";
const CODE = "runtime_unavailable";
const KIND = "backend-failed";
const CAUSE = "inference.context_overflow";

interface Names {
  failureKind?: "backend-failed";
  cause?: string;
}

function ended(names: Names): RunView {
  const failure = { code: CODE, message: "150001 tokens.", recovery: "As the hub says it.", ...names };
  const task = { kind: "text", text: "Read it all.", redacted: false } as const;
  return { ...foldRun([]), state: "failed", failure, task, lastSequence: 9, lastAt: AT } as RunView;
}

function lastRow(names: Names): Row {
  const payload = { code: CODE, message: "150001 tokens.", ...names };
  const event: RunEvent = { sequence: 9, id: "evt_9", type: "run.failed", runId: "run_1", agentId: "house", timestamp: AT, v: 1, payload };
  return { key: "row-9", first: 9, last: 9, at: AT, endAt: AT, events: [event], kind: "lifecycle", state: "failed" };
}

const nothing = (): void => undefined;
const SHOWN: Record<string, (run: ShownRun, row: Row) => string> = {
  card: (run) => render(<EndCard run={run} />).container.textContent,
  detail: (run, row) => render(<DetailContent run={run} row={row} />).container.textContent,
  transcript: (run) => render(<Transcript run={run} />).container.textContent,
  markdown: (run) => transcriptMarkdown("run_1", run.snapshot.view),
};

function words(name: string, part: "title" | "next", language: Language): string {
  const text = maybe(`failures.${name}.${part}`) ?? "";
  expect(/\p{Script=Han}/u.test(text), `${text} is ${language}`).toBe(language === "zh");
  return text;
}

describe.each<Language>(["en", "zh"])("in %s", (language) => {
  it.each(Object.keys(SHOWN))("the %s of a failure says what its cause asks for, and no more general step", async (place) => {
    await setLanguage(language);
    const names = { failureKind: KIND, cause: CAUSE } as const;
    const run = { id: "run_1", snapshot: { id: "run_1", rev: 1, link: { kind: "ended" }, view: ended(names) }, reading: null } as ShownRun;
    const text = SHOWN[place]?.(run, lastRow(names)) ?? "";
    for (const shown of [CODE, KIND, CAUSE, words(CAUSE, "title", language), words(CAUSE, "next", language)]) expect(text).toContain(shown);
    for (const name of [CODE, KIND]) expect(text).not.toContain(words(name, "next", language));
  });

  it.each<[string, Names]>([
    [CAUSE, { failureKind: KIND, cause: CAUSE }],
    [KIND, { failureKind: KIND }],
    [KIND, { failureKind: KIND, cause: "of.a_later_version" }],
    [CODE, {}],
  ])("the row of a failure is called after %s", async (name, names) => {
    await setLanguage(language);
    const { container } = render(
      <EventRow runId="run_1" row={lastRow(names)} position={0} total={1} selected={false} open={false} measure={nothing} onSelect={nothing} onToggle={nothing} />,
    );
    expect(container.textContent).toContain(words(name, "title", language));
    expect(container.textContent).toContain(CODE);
  });
});
