// A call of the table as a component makes it: through the confirming step, which says yes where it is asked.

import { Invocation, type Caller } from "../src/invocation.js";
import type { Make } from "../../client/test/vectors.js";

/** Calls through the logic of `useAction`. */
export const viaAction: Make = (client, action, input, options) => {
  const { signal, confirm: _, ...said } = options;
  const caller: Caller = {
    actions: () => client.actions(),
    refresh: () => client.refresh(),
    follow: (name, given, following) => client.follow(name, given, following),
  };
  const invocation = new Invocation<unknown, unknown>(caller, action, () => Promise.resolve(true));
  signal?.addEventListener("abort", () => invocation.cancel());
  return invocation.invoke(input, said);
};
