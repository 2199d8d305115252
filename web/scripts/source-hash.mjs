// The hash of everything that the page is made of. The same in Rust, with the rule in words, is crates/ui-assets/tests/staleness.rs.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const FILES = [
  "package.json",
  "package-lock.json",
  "tsconfig.base.json",
  "apps/console/package.json",
  "apps/console/index.html",
  "apps/console/vite.config.ts",
];
const FOLDERS = ["apps/console/src", "apps/console/public"];

/** The hash of the sources below the folder `web`, as hexadecimal digits. */
export function sourceHash(webDir) {
  const packages = namesIn(join(webDir, "packages")).map((entry) => `packages/${entry.name}`);
  const paths = [
    ...FILES,
    ...FOLDERS.flatMap((folder) => filesBelow(webDir, folder)),
    ...packages.flatMap((folder) => [`${folder}/package.json`, ...filesBelow(webDir, `${folder}/src`)]),
  ];
  const all = createHash("sha256");
  for (const path of paths.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))) {
    all.update(path).update("\0").update(createHash("sha256").update(readFileSync(join(webDir, path))).digest());
  }
  return all.digest("hex");
}

function filesBelow(webDir, folder) {
  return namesIn(join(webDir, folder)).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(webDir, path) : [path];
  });
}

// A folder that is not there holds nothing.
function namesIn(folder) {
  return existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [];
}
