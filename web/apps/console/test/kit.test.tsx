// @vitest-environment happy-dom
// The kit: what every page relies on.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { keysText } from "../src/app/key-help";
import { loggedInAgain } from "../src/app/logins";
import { prefer } from "../src/app/preferences";
import { startShortcuts, useShortcut } from "../src/app/shortcuts";
import { maybe, plural, setLanguage, t } from "../src/i18n";
import { Button, Cost, durationText, effect, EffectButton, ErrorNote, FailureCard, StatePill, STATES, tokensText, visible } from "../src/ui";
import { setPageTitle, setWaiting } from "../src/ui/page";

afterEach(async () => {
  cleanup();
  localStorage.clear();
  await setLanguage("en");
});

describe("a button", () => {
  it("that cannot be pressed keeps its focus and says why", () => {
    const pressed = vi.fn();
    render(
      <Button disabledReason="The run has ended." onClick={pressed}>
        Interrupt
      </Button>,
    );
    const button = screen.getByRole("button", { name: "Interrupt", description: "The run has ended." });
    fireEvent.click(button);
    expect(pressed).not.toHaveBeenCalled();
    expect(button.hasAttribute("disabled")).toBe(false);
    expect(button.getAttribute("aria-disabled")).toBe("true");
  });

  it("that was pressed says so and is not pressed twice", () => {
    const pressed = vi.fn();
    render(
      <Button pending onClick={pressed}>
        Start
      </Button>,
    );
    fireEvent.click(screen.getByRole("button"));
    expect(pressed).not.toHaveBeenCalled();
    expect(screen.getByRole("button").textContent).toBe("Sending…");
  });

  it("that takes effect says verb, object and scope, and is the only amber one", () => {
    render(<EffectButton label={effect("runs.effect.start", { agent: "codex", workspace: "docs-site" })} />);
    const button = screen.getByRole("button", { name: "Start run: codex in docs-site" });
    expect(button.className).toContain("btn--effect");
  });
});

describe("a failure", () => {
  it("C08 shows title, code, safe message and the next step", () => {
    render(<FailureCard code="provider_rate_limited" failureKind="provider-rate-limited" message="The provider answered 429." recovery="as the hub says it" retryable />);
    const card = screen.getByRole("region", { name: "Failure" });
    for (const text of ["The model provider refused more requests", "provider_rate_limited", "The provider answered 429.", "Wait until the provider's limit resets"]) {
      expect(card.textContent).toContain(text);
    }
    expect(screen.getByRole("button", { name: /Copy diagnostics/ })).toBeTruthy();
  });

  it("of an unknown code shows the raw code, what the hub says, and the diagnostics", () => {
    render(<FailureCard code="later_version" message="Something new." recovery="Update the page." />);
    const text = screen.getByRole("region").textContent;
    expect(text).toContain("Failed with later_version");
    expect(text).toContain("Update the page.");
    expect(screen.getByRole("button", { name: /Copy diagnostics/ })).toBeTruthy();
  });

  it("whose code holds a dot has its words too", async () => {
    expect(maybe("failures.storage.disk_full.title")).toBe("The disk is full");
    await setLanguage("zh");
    expect(maybe("failures.storage.disk_full.title")).toBe("磁盘已满");
  });

  it("that only says that there was no session is gone when there is one again, also where it is shown anew", () => {
    const error = { code: "AUTHENTICATION_ERROR", message: "You are not logged in.", issues: [] };
    const other = { code: "CONFLICT", message: "Somebody was faster.", issues: [] };
    const notes = [<ErrorNote key="session" error={error} />, <ErrorNote key="other" error={other} />];
    const { unmount } = render(notes);
    expect(screen.getAllByRole("alert")).toHaveLength(2);
    act(loggedInAgain);
    expect(screen.getByRole("alert").dataset["code"]).toBe("CONFLICT");
    unmount();
    render(notes);
    expect(screen.getByRole("alert").dataset["code"]).toBe("CONFLICT");
  });

  it("of a call lists the issues by their paths", () => {
    render(<ErrorNote issues error={{ code: "VALIDATION_ERROR", message: "No.", issues: [{ path: ["budget", 0], message: "is too small" }] }} />);
    expect(screen.getByRole("alert").textContent).toContain("budget.0 is too small");
  });
});

describe("a state", () => {
  it.each(STATES)("%s is a word beside an icon, never a colour alone", (state) => {
    const { container } = render(<StatePill state={state} />);
    expect(container.textContent).toBe(t(`common.state.${state}`));
    expect(container.querySelector("svg[aria-hidden]")).not.toBeNull();
  });

  it("speaks the new language at once", async () => {
    const { container } = render(<StatePill state="needs_approval" />);
    await setLanguage("zh");
    await vi.waitFor(() => expect(container.textContent).toBe("需要审批"));
  });
});

describe("keys", () => {
  function Keyed({ keys, run }: { keys: string; run: () => void }) {
    useShortcut(keys, "runs.keys.next", run);
    return <input aria-label="field" />;
  }
  const press = (key: string, from: Element | Window = window, more: KeyboardEventInit = {}) => fireEvent.keyDown(from, { key, bubbles: true, ...more });

  it.each([
    ["j", [["j", {}]], 1],
    ["g r", [["g", {}], ["r", {}]], 1],
    ["g r", [["r", {}]], 0],
    ["mod+k", [["k", { ctrlKey: true }]], 1],
    ["mod+k", [["k", { metaKey: true }]], 1],
    ["k", [["k", { ctrlKey: true }]], 0],
    ["?", [["?", { shiftKey: true }]], 1],
  ] as const)("%s fires after %j: %i times", (keys, pressed, times) => {
    const run = vi.fn();
    const stop = startShortcuts();
    render(<Keyed keys={keys} run={run} />);
    for (const [key, more] of pressed) press(key, window, more);
    expect(run).toHaveBeenCalledTimes(times);
    stop();
  });

  it("never fire while somebody types, except with a modifier", () => {
    const [single, held] = [vi.fn(), vi.fn()];
    const stop = startShortcuts();
    render(
      <>
        <Keyed keys="j" run={single} />
        <Keyed keys="mod+k" run={held} />
      </>,
    );
    const [field] = screen.getAllByLabelText("field");
    if (!field) throw new Error("no field");
    press("j", field);
    press("k", field, { ctrlKey: true });
    expect(single).not.toHaveBeenCalled();
    expect(held).toHaveBeenCalledTimes(1);
    stop();
  });

  it("of one letter can be switched off", () => {
    const run = vi.fn();
    const stop = startShortcuts();
    render(<Keyed keys="j" run={run} />);
    prefer("keys", false);
    press("j");
    expect(run).not.toHaveBeenCalled();
    stop();
  });

  it("go with what is shown", () => {
    const run = vi.fn();
    const stop = startShortcuts();
    render(<Keyed keys="j" run={run} />).unmount();
    press("j");
    expect(run).not.toHaveBeenCalled();
    stop();
  });

  it("are spelled as on the keyboard", () => {
    expect(keysText("g r")).toEqual([["G"], ["R"]]);
    expect(keysText("mod+enter")).toEqual([["Ctrl", "Enter"]]);
    expect(keysText("/")).toEqual([["/"]]);
  });
});

describe("numbers", () => {
  it.each([
    [0, "0s"],
    [59_999, "59s"],
    [190_000, "3m 10s"],
    [3_900_000, "1h 05m"],
    [183_600_000, "2d 03h"],
    [-5, "0s"],
  ])("%i ms is %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
  it("has tenths only below ten seconds", () => {
    expect([durationText(312, true), durationText(9_960, true), durationText(51_400, true)]).toEqual(["0.3s", "9s", "51s"]);
  });
  it("one of something is not called many", () => {
    const counts = [plural(1, "policy.countOne", "policy.count"), plural(1, "audit.countOne", "audit.count"), plural(2, "audit.countOne", "audit.count")];
    expect(counts).toEqual(["1 rule", "1 entry", "2 entries"]);
  });
  it("tokens are short", () => {
    expect([980, 1200, 118_400, 1_240_000].map(tokensText)).toEqual(["980", "1.2k", "118k", "1.2M"]);
  });
  it("what is not known is a dash and not nothing", () => {
    const { container } = render(<Cost usd={null} />);
    expect(container.textContent).toBe("–");
  });
});

describe("text", () => {
  it("spells out what would hide something", () => {
    expect(visible("rm\u202e -rf\u200b \u0007")).toBe("rm⟨U+202E⟩ -rf⟨U+200B⟩ ⟨U+0007⟩");
    expect(visible("a\r\nb\tc 你好 🙂")).toBe("a\nb\tc 你好 🙂");
    expect(visible("over\rwritten")).toBe("over⟨U+000D⟩written");
  });
  it("the title of the window counts what waits for a person", () => {
    setPageTitle("Runs");
    setWaiting(2);
    expect(document.title).toBe("(2) Runs · Runyard");
    setWaiting(0);
    expect(document.title).toBe("Runs · Runyard");
  });
});
