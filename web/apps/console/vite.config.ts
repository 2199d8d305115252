import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const WEB = resolve(import.meta.dirname, "../..");
const HUB = process.env["RUNYARD_HUB"] ?? "http://127.0.0.1:4710";

/** Writes what the page was made of beside it, so that a stale page is found without Node; nothing of the machine or the time. */
function builtFrom(): Plugin {
  let outDir = "";
  return {
    name: "runyard-built-from",
    apply: "build",
    configResolved: (config) => {
      outDir = resolve(config.root, config.build.outDir);
    },
    closeBundle: async () => {
      const { sourceHash } = await import("../../scripts/source-hash.mjs");
      writeFileSync(join(outDir, "ui-build.json"), `${JSON.stringify({ sources: sourceHash(WEB) })}\n`);
    },
  };
}

// The result is embedded in the binary: crates/ui-assets.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwindcss(), builtFrom()],
  // The packages as they stand here. Not by the condition `development`: that would take the router's development build too.
  resolve: { alias: { "@runyard/client": join(WEB, "packages/client/src/index.ts"), "@runyard/react": join(WEB, "packages/react/src/index.ts") } },
  build: {
    outDir: "../../../crates/ui-assets/dist",
    emptyOutDir: true,
    assetsDir: "assets",
    // Fonts and icons as files: `data:` is not in the page's Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    reportCompressedSize: false,
    // What every page has in common is one file: dozens of small ones compress worse and load later.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", test: isBase }] } } },
  },
  server: { proxy: Object.fromEntries(["/api", "/login", "/logout", "/dev/api"].map((path) => [path, { target: HUB, bypass: page }])) },
});

const BASE = [
  /node_modules\/(react|react-dom|scheduler|use-sync-external-store)\//,
  /node_modules\/@tanstack\/(react-router|router-core|history|store|react-store)\//,
  /packages\/(client|react)\/src\/(?!use-action|invocation)/,
  /console\/src\/(i18n\/index|ui\/(?!menu|tooltip|markdown|schema-form|modal))/,
  /console\/src\/app\/(boot|announce|brand|overlay|preferences|run-tab|run-title|shortcuts|theme)\./,
];

/** React, the router, the client and the kit; not what only some pages draw with. */
function isBase(id: string): boolean {
  return BASE.some((part) => part.test(id));
}

/** `/login` is a page when it is looked at and a call when it is posted to. */
function page(request: { method?: string | undefined; url?: string | undefined }): string | undefined {
  return request.method === "GET" && request.url?.startsWith("/login") ? "/index.html" : undefined;
}
