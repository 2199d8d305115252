// A hub with an agent of our own, which talks to a model provider of ours on this machine.
import { KEY, provider, type Providing } from "./provider.ts";
import { Yard } from "./yard.ts";

/** What the agent is called. */
export const HOUSE = "house";

/** The yard, and how to end it with its provider. */
export async function nativeYard(): Promise<Providing> {
  const { url, stop } = await provider();
  const more = `\n[agent.${HOUSE}]\nbackend = "native"\nmodel = "demo"\nprovider.base_url = ${JSON.stringify(url)}\n`;
  const yard = await Yard.start({ more });
  await yard.hub.commandWith(JSON.stringify({ OPENAI_API_KEY: KEY }), "secrets", "set", HOUSE, "auth.json");
  return {
    yard,
    stop: async () => {
      await yard.hub.remove();
      await stop();
    },
  };
}
