// Packs both packages, installs them into a copy of examples/blank as a stranger would, checks it, and serves it with a proxy
// to a hub: as somebody works on it, or built. Nothing comes from the network: React and Vite are those of this workspace.
//
//   node scripts/packed.mjs [http://127.0.0.1:4710] [dev|preview]

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
const BORROWED = ["react", "react-dom", "vite", "@vitejs/plugin-react", "@types/react", "@types/react-dom", "typescript"];

/** Makes the app in a folder of its own and gives the folder. */
export function makeApp() {
  const folder = mkdtempSync(join(tmpdir(), "runyard-packed-"));
  const app = join(folder, "app");
  const pack = ["pack", "--silent", "--pack-destination", folder];
  for (const name of ["client", "react"]) run("npm", pack, join(WEB, "packages", name));
  const packed = readdirSync(folder).filter((name) => name.endsWith(".tgz")).map((name) => join(folder, name));
  cpSync(join(WEB, "examples/blank"), app, { recursive: true, filter: (path) => !path.includes("node_modules") });
  const about = JSON.parse(readFileSync(join(app, "package.json"), "utf8"));
  writeFileSync(join(app, "package.json"), JSON.stringify({ ...about, dependencies: {}, devDependencies: {} }));
  const install = ["install", "--offline", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", "--silent"];
  run("npm", [...install, ...packed], app);
  for (const name of BORROWED) {
    mkdirSync(dirname(join(app, "node_modules", name)), { recursive: true });
    symlinkSync(join(WEB, "node_modules", name), join(app, "node_modules", name));
  }
  return { folder, app };
}

/** Makes the app, checks its types and serves it, built unless in dev mode; `close` ends that and removes it. */
export async function serveApp({ hub = "http://127.0.0.1:4710", mode = "preview", port = 0 } = {}) {
  const { folder, app } = makeApp();
  process.env.RUNYARD_HUB = hub;
  run(process.execPath, [join(WEB, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", app], app);
  const vite = await import(pathToFileURL(join(WEB, "node_modules/vite/dist/node/index.js")).href);
  const config = { root: app, logLevel: "warn", configFile: join(app, "vite.config.ts") };
  const listen = { host: "127.0.0.1", port, strictPort: port !== 0 };
  const server = await (mode === "dev" ? develop(vite, config, listen) : preview(vite, config, listen));
  const url = server.resolvedUrls.local[0].replace(/\/$/, "");
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Vite may still write there what it was preparing.
  process.once("exit", remove);
  const close = async () => {
    await server.close();
    remove();
  };
  return { url, app, close };
}

async function develop(vite, config, listen) {
  const server = await vite.createServer({ ...config, server: listen });
  return server.listen();
}

async function preview(vite, config, listen) {
  await vite.build(config);
  return vite.preview({ ...config, preview: listen });
}

function run(command, words, cwd) {
  execFileSync(command, words, { cwd, stdio: ["ignore", "ignore", "inherit"] });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , hub, mode] = process.argv;
  const { url, close } = await serveApp({ ...(hub && { hub }), ...(mode && { mode }), port: 5173 });
  console.log(url);
  process.once("SIGINT", () => void close());
  process.once("SIGTERM", () => void close());
}
