// Removes the addresses of sponsors from package-lock.json: the lock file holds versions and hashes only.
// `npm run lock` calls it after npm has written the file.
import { readFileSync, writeFileSync } from "node:fs";

const PATH = "package-lock.json";

const lock = JSON.parse(readFileSync(PATH, "utf8"));
for (const entry of Object.values(lock.packages)) delete entry.funding;
writeFileSync(PATH, `${JSON.stringify(lock, null, 2)}\n`);
