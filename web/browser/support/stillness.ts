// Watches from inside the page whether anything moves by itself: the browser's own layout shifts, and where one thing stands in each frame.
import { expect, type Page } from "@playwright/test";

interface Seen {
  shift: number;
  sources: string[];
  places: string[];
}

interface Watching {
  __still: Seen & { follow: (selector: string) => void };
}

/** Begins to watch with the next page that is loaded. */
export async function watchStillness(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const seen: Seen = { shift: 0, sources: [], places: [] };
    const follow = (selector: string): void => {
      const frame = (): void => {
        const box = document.querySelector(selector)?.getBoundingClientRect();
        const place = box === undefined ? "gone" : [box.x, box.y, box.width, box.height].join(" ");
        if (!seen.places.includes(place)) seen.places.push(place);
        requestAnimationFrame(frame);
      };
      frame();
    };
    (window as unknown as Watching).__still = Object.assign(seen, { follow });
    const describe = (node: Node | null | undefined): string =>
      node instanceof Element ? `${node.tagName}.${node.className}: ${node.textContent.slice(0, 60)}` : String(node?.nodeName);
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const shift = entry as PerformanceEntry & { value: number; hadRecentInput: boolean; sources?: { node?: Node | null }[] };
        if (shift.hadRecentInput) continue;
        seen.shift += shift.value;
        seen.sources.push(`${shift.value.toFixed(4)} ${(shift.sources ?? []).map(({ node }) => describe(node)).join(" | ")}`);
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
}

/** Remembers every place at which this stands from now on. */
export async function follow(page: Page, selector: string): Promise<void> {
  await page.evaluate((what) => (window as unknown as Watching).__still.follow(what), selector);
}

/** Waits until a page shows the same for a while: streams stay open, so a network that is idle is nothing to wait for. */
export async function untilStill(page: Page): Promise<void> {
  let before = "";
  await expect
    .poll(async () => {
      const last = before;
      before = steady(await page.locator("body").ariaSnapshot());
      return before === last;
    }, { intervals: [700] })
    .toBe(true);
}

/** What a page says, without the times that pass while one looks. */
export function steady(tree: string): string {
  return tree.replace(/\d+ ?(ms|s|m|h|d)\b( \d+ ?(s|m|h)\b)?/g, "some time");
}

/** What has moved so far. */
export async function seenMoving(page: Page): Promise<Seen> {
  return page.evaluate(() => {
    const { shift, sources, places } = (window as unknown as Watching).__still;
    return { shift, sources, places };
  });
}
