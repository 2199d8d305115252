// a20 The table of calls on the surface `react`, against the real application: RUNYARD_VECTOR_APP names its program.
// clause: A04, A20, A21

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startVectorApp } from "../../client/test/support/vector-app.js";
import { readVectors, runVector, type Make } from "../../client/test/vectors.js";
import { viaAction } from "./via-action.js";

const PROGRAM = process.env["RUNYARD_VECTOR_APP"];
const TABLE = fileURLToPath(new URL("../../../../crates/testkit/vectors.json", import.meta.url));

const viaCall: Make = (client, action, input, options) => client.call(action, input, options);
const viaFollow: Make = (client, action, input, options) => client.follow(action, input, options);

describe.skipIf(PROGRAM === undefined)("a20 every call of the table gives its envelope", () => {
  for (const [way, make] of [["call", viaCall], ["follow", viaFollow], ["useAction", viaAction]] as const) {
    it(`by ${way}`, { timeout: 120_000 }, async () => {
      const app = await startVectorApp(PROGRAM ?? "");
      const found: string[] = [];
      try {
        for (const vector of readVectors(readFileSync(TABLE, "utf8"))) {
          found.push(...(await runVector(vector, app, app.marker(), make)));
        }
      } finally {
        await app.stop();
      }
      expect(found).toEqual([]);
    });
  }
});
