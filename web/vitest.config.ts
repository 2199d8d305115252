import { defineConfig } from "vitest/config";

// Tests that bound the memory collect what is not used any more first, and numbers are read exactly as in a browser of today.
const exactNumbers = "rawJSON" in JSON ? [] : ["--harmony-json-parse-with-source"];

// Unit tests only: what needs the real binary and a real browser is in browser/.
export default defineConfig({
  // Tests without a page resolve as a server does; neither may take what was built for packing.
  resolve: { conditions: ["runyard-source"] },
  ssr: { resolve: { conditions: ["runyard-source"], externalConditions: ["runyard-source"] } },
  test: {
    include: ["packages/*/test/**/*.test.{ts,tsx}", "apps/console/test/**/*.test.{ts,tsx}"],
    // What is waited for is waited for long, since a machine may be busy; nothing is measured by it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    execArgv: ["--expose-gc", ...exactNumbers],
  },
});
