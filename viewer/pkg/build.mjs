// Bundles the package: `node build.mjs MODULE_FOLDER`, where `zvf-bindgen` wrote `zvf.js` and `zvf_bg.wasm`.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { transformSync } from "esbuild";

const LIMIT = 1_200_000;
const [from] = process.argv.slice(2);
mkdirSync("dist", { recursive: true });
for (const name of ["engine", "index", "panic", "port", "worker"]) {
  const text = readFileSync(`src/${name}.ts`, "utf8");
  const { code } = transformSync(text, { loader: "ts", target: "es2022" });
  writeFileSync(`dist/${name}.js`, code.replaceAll(/(from "\.\/\w+)\.ts"/g, '$1.js"'));
}
for (const name of ["zvf.js", "zvf_bg.wasm"]) copyFileSync(`${from}/${name}`, `dist/${name}`);
const names = ["engine.js", "index.js", "panic.js", "port.js", "worker.js", "zvf.js", "zvf_bg.wasm"];
const size = names.map((name) => gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length).reduce((a, b) => a + b);
console.log(`${size} bytes gzipped`);
if (size > LIMIT) throw new Error(`the package takes ${size} bytes gzipped; the limit is ${LIMIT}`);
