// @vitest-environment happy-dom
// C12: an effect is taken only by a press that was meant for it.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Button, effect, EffectButton } from "../src/ui";
import { Arming, STILL_MS } from "../src/ui/arming";

const HERE = { onScreen: 700, inPage: 700 };
const seen = (at: number, about = "one"): Arming => {
  const arming = new Arming();
  arming.see(about, HERE, at);
  return arming;
};
/** A press and the click that follows it. */
const pressed = (arming: Arming, at: number, count = 1): boolean => {
  arming.press(at);
  return arming.click(at, count);
};

describe("an effect", () => {
  it("is inert until it has been on the screen for a second", () => {
    expect(pressed(seen(0), STILL_MS - 1)).toBe(false);
    expect(pressed(seen(0), STILL_MS)).toBe(true);
  });

  it("that was pressed too early has to stand untouched anew", () => {
    const arming = seen(0);
    expect(pressed(arming, 900)).toBe(false);
    expect(pressed(arming, 1100)).toBe(false);
    expect(arming.waitMs(1100)).toBe(STILL_MS);
    expect(pressed(arming, 1100 + STILL_MS)).toBe(true);
  });

  it("is not taken by a press that began too early, however long it is held", () => {
    const arming = seen(0);
    arming.press(500);
    expect(arming.click(5000, 1)).toBe(false);
  });

  it("is not taken by the second of two quick clicks", () => {
    expect(pressed(seen(0), 5000, 2)).toBe(false);
  });

  it("is looked at anew when it is about something else", () => {
    const arming = seen(0);
    arming.see("two", HERE, 5000);
    expect(pressed(arming, 5150)).toBe(false);
  });

  it("that slides under the pointer is inert, and one that is scrolled to or sticks to an edge is not", () => {
    const slid = seen(0);
    slid.see("one", { onScreen: 400, inPage: 400 }, 5000);
    expect(pressed(slid, 5150)).toBe(false);
    for (const place of [{ onScreen: 400, inPage: 700 }, { onScreen: 700, inPage: 400 }]) {
      const arming = seen(0);
      arming.see("one", place, 5000);
      expect(pressed(arming, 5150)).toBe(true);
    }
  });

  it("is not taken by a key that was held before the focus came", () => {
    const arming = seen(0);
    arming.press(5000, true);
    expect(arming.click(5000, 0)).toBe(false);
    const own = seen(0);
    own.press(5000);
    own.press(5030, true);
    expect(own.click(5100, 0)).toBe(true);
  });
});

describe("the button of an effect", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
  });
  const label = effect("runs.effect.start", { agent: "codex", workspace: "docs-site" });
  const pass = (ms: number) => act(() => vi.advanceTimersByTime(ms));
  const click = (button: HTMLElement, detail = 1) => {
    fireEvent.pointerDown(button);
    fireEvent.click(button, { detail });
  };

  it("says why it is inert, and then works", () => {
    const taken = vi.fn();
    render(<EffectButton label={label} onClick={taken} />);
    const button = screen.getByRole("button", { description: /look at it first/ });
    expect(button.getAttribute("aria-disabled")).toBe("true");
    pass(STILL_MS);
    expect(button.hasAttribute("aria-disabled")).toBe(false);
    click(button);
    expect(taken).toHaveBeenCalledTimes(1);
  });

  it("two clicks do not take the effect of what comes under the pointer", () => {
    const taken = vi.fn();
    const { rerender } = render(<EffectButton label={label} about="first" onClick={() => taken("first")} />);
    pass(STILL_MS);
    click(screen.getByRole("button"));
    rerender(<EffectButton label={label} about="second" onClick={() => taken("second")} />);
    pass(150);
    click(screen.getByRole("button"));
    expect(taken.mock.calls).toEqual([["first"]]);
    pass(STILL_MS);
    click(screen.getByRole("button"));
    expect(taken.mock.calls).toEqual([["first"], ["second"]]);
  });

  it("Enter takes no effect and submits no form, Space does", () => {
    const [taken, sent] = [vi.fn(), vi.fn()];
    render(
      <form onSubmit={sent}>
        <EffectButton label={label} onClick={taken} />
      </form>,
    );
    pass(STILL_MS);
    const button = screen.getByRole("button");
    expect(fireEvent.keyDown(button, { key: "Enter" }), "what the browser would do is prevented").toBe(false);
    expect(button.getAttribute("type")).toBe("button");
    expect(fireEvent.keyDown(button, { key: " " })).toBe(true);
    fireEvent.click(button, { detail: 0 });
    expect(taken).toHaveBeenCalledTimes(1);
    expect(sent).not.toHaveBeenCalled();
  });

  it("keeps the reason why it cannot be pressed at all", () => {
    render(<EffectButton label={label} disabledReason="The run has ended." />);
    expect(screen.getByRole("button", { description: "The run has ended." })).toBeTruthy();
  });

  it("a button without effect works at once", () => {
    const taken = vi.fn();
    render(<Button onClick={taken}>Close</Button>);
    fireEvent.click(screen.getByRole("button"));
    expect(taken).toHaveBeenCalledTimes(1);
  });
});
