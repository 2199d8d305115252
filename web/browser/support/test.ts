// What every browser test has: a hub of its worker, a page of somebody who is logged in, and eyes on what no page may do.
import { type BrowserContext, type BrowserContextOptions, type Page, test as base, expect } from "@playwright/test";
import { Proxy } from "./proxy.ts";
import { contextOf, logIn, type Session } from "./session.ts";
import { Watch } from "./watch.ts";
import { Yard } from "./yard.ts";

export { expect };

/** Whoever looks: opens further pages, each watched. */
export interface Person {
  context: BrowserContext;
  watch: Watch;
}

interface OfTest {
  /** Opens a browser of its own for the owner; it is watched, and closed after the test. */
  person: (options?: BrowserContextOptions) => Promise<Person>;
  watch: Watch;
  page: Page;
  /** Stands between a page and the hub, at an address of its own. */
  wire: Proxy;
}

interface OfWorker {
  yard: Yard;
  session: Session;
}

/** A hub as long as it is used; tests that extend with it share theirs with no others. */
export const yardOfItsOwn: [(none: object, use: (yard: Yard) => Promise<void>) => Promise<void>, { scope: "worker" }] = [
  async ({}, use) => {
    const yard = await Yard.start();
    await use(yard);
    await yard.hub.remove();
  },
  { scope: "worker" },
];

export const test = base.extend<OfTest, OfWorker>({
  yard: yardOfItsOwn,
  session: [
    async ({ yard }, use) => {
      await use(await logIn(await yard.link()));
    },
    { scope: "worker" },
  ],
  wire: async ({ yard }, use) => {
    const proxy = await Proxy.start(() => yard.hub.port);
    await use(proxy);
    await proxy.stop();
  },
  person: async ({ browser, yard, session, wire }, use) => {
    const people: Person[] = [];
    await use(async (options = {}) => {
      const context = await contextOf(browser, session, { baseURL: yard.hub.url, ...options });
      const person = { context, watch: await Watch.over(context, yard.hub.url, wire.url) };
      people.push(person);
      return person;
    });
    for (const { context } of people) await context.close();
    expect(people.flatMap(({ watch }) => watch.unexpected()), "the browser has nothing to complain of").toEqual([]);
  },
  // Overridden, so that every test's own page is a watched one.
  context: async ({ person, viewport, colorScheme, locale, timezoneId }, use) => {
    const owner = await person(only({ viewport, colorScheme, locale, timezoneId }));
    watches.set(owner.context, owner.watch);
    await use(owner.context);
  },
  watch: async ({ context }, use) => {
    const watch = watches.get(context);
    if (watch === undefined) throw new Error("the test's own context is watched");
    await use(watch);
  },
});

const watches = new WeakMap<BrowserContext, Watch>();

interface Chosen {
  viewport: BrowserContextOptions["viewport"];
  colorScheme: BrowserContextOptions["colorScheme"];
  locale: string | undefined;
  timezoneId: string | undefined;
}

/** What is chosen, without what is not. */
function only({ viewport, colorScheme, locale, timezoneId }: Chosen): BrowserContextOptions {
  return {
    ...(viewport !== undefined && { viewport }),
    ...(colorScheme !== undefined && { colorScheme }),
    ...(locale !== undefined && { locale }),
    ...(timezoneId !== undefined && { timezoneId }),
  };
}
