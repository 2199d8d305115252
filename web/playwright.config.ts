import { defineConfig } from "@playwright/test";

// The real program and a real browser. RUNYARD_BIN names the program; `./test` builds it and runs this.
export default defineConfig({
  testDir: "browser/specs",
  outputDir: "../target/browser-results",
  fullyParallel: false,
  forbidOnly: process.env["CI"] !== undefined,
  workers: 2,
  // What is waited for is waited for long, since a machine may be busy; nothing is measured by it.
  timeout: 180_000,
  expect: { timeout: 60_000 },
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    trace: "off",
    screenshot: "only-on-failure",
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--enable-precise-memory-info"] },
  },
});
