// The timeline, of which only what is in view is there: its rows as numbers, now and from the first to the last.
import { expect } from "@playwright/test";
import type { RunPage } from "./run-page.ts";
import type { Yard } from "./yard.ts";

/**
 * The numbers of the rows that are drawn, from top to bottom. A turn's own row counts all that is in the turn, and a word's when it was
 * heard, so they are left out.
 */
export function numbers(run: RunPage): Promise<number[]> {
  // In one step: between two the list may have been drawn anew.
  return run.feed.evaluate((feed) =>
    [...feed.querySelectorAll('[data-seq]:not([data-kind="turn"], [data-kind="command"])')]
      .map((row) => ({ top: row.getBoundingClientRect().top, number: Number(row.getAttribute("data-seq")) }))
      .sort((a, b) => a.top - b.top)
      .map(({ number }) => number),
  );
}

/** What is drawn out of order, or twice. */
export async function disorder(run: RunPage): Promise<string[]> {
  const drawn = await numbers(run);
  return drawn.flatMap((number, index) => (index > 0 && number <= (drawn[index - 1] ?? 0) ? [`${number} after ${drawn[index - 1]}`] : []));
}

/** Reads the whole timeline from its beginning to its end, as somebody who scrolls would: the numbers that it has, as in "1-17 19-20". */
export async function whole(run: RunPage): Promise<string> {
  const all = await run.feed.evaluate(async (feed) => {
    let scroller: Element = feed;
    while (scroller.parentElement !== null && !(scroller.scrollHeight > scroller.clientHeight + 1 && getComputedStyle(scroller).overflowY !== "visible")) {
      scroller = scroller.parentElement;
    }
    const frame = (): Promise<unknown> => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const drawn = (): number[] => [...feed.querySelectorAll("[data-seq]")].map((row) => Number(row.getAttribute("data-seq")));
    // A page that has just been shown in another way still goes to its end once, as late as a slow machine lets it.
    for (let atTop = 0, tries = 0; atTop < 4 && tries < 100; tries += 1) {
      scroller.scrollTop = 0;
      await frame();
      await frame();
      atTop = scroller.scrollTop === 0 ? atTop + 1 : 0;
    }
    const found = new Set<number>();
    for (;;) {
      for (const number of drawn()) found.add(number);
      if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1) break;
      scroller.scrollTop += scroller.clientHeight * 0.95;
      await frame();
      await frame();
    }
    return [...found].sort((a, b) => a - b);
  });
  return ranges(all);
}

/** Waits until the page has all that the hub has, which is more than this, and nothing more comes by itself; says how much it is. */
export async function untilQuiet(yard: Yard, run: RunPage, moreThan = 0): Promise<number> {
  let stored = 0;
  await expect
    .poll(async () => {
      const before = stored;
      stored = (await yard.api.events(run.id)).length;
      return stored > moreThan && stored === before && (await run.lastSequence()) === stored;
    }, { intervals: [500], timeout: 120_000 })
    .toBe(true);
  return stored;
}

function ranges(numbers: number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last !== undefined && number === last[1] + 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => `${from}-${to}`).join(" ");
}
