/** Builds the page from `src` and from the package that `pkg/build.sh` wrote to `pkg/dist`.
 *
 * `dist/index.html` is the page, beside `dist/zvf_bg.wasm`, the engine. `dist/inline.html` contains
 * the engine too, and has a place for a store: a program replaces `__STORE__` in
 * `<script type="application/octet-stream" id="store" data-name="">__STORE__</script>` by a zip of
 * the store in base64, and may set the name. Such elements are data, which the content security
 * policy does not cover; script and style are allowed by their hashes. */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const here = (path) => new URL(path, import.meta.url).pathname;
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const minified = { bundle: true, minify: true, charset: "utf8", legalComments: "none", write: false };
const [script, style] = await Promise.all([
  build({
    ...minified, entryPoints: [here("src/main.ts")], format: "iife", target: "es2022",
    alias: { zvf: here("pkg/dist/index.js") }, external: ["node:fs/promises"], define: { "import.meta.url": "location.href" },
  }),
  build({ ...minified, entryPoints: [here("src/style.css")] }),
]).then((all) => all.map((each) => each.outputFiles[0].text.trim().replaceAll("</script", "<\\/script")));

const policy = [
  "default-src 'none'", `script-src ${hash(script)} 'wasm-unsafe-eval'`, `style-src ${hash(style)}`,
  "img-src data: blob:", "connect-src http: https:", "worker-src 'self' blob:", "base-uri 'none'", "form-action 'none'",
].join("; ");

function page(data) {
  const parts = { __CSP__: policy, __STYLE__: style, __DATA__: data, __SCRIPT__: `<script>${script}</script>` };
  return readFileSync(here("src/index.html"), "utf8").replace(/__(CSP|STYLE|DATA|SCRIPT)__/g, (name) => parts[name]);
}

const data = (id, text, name = "") => `<script type="application/octet-stream" id="${id}"${name}>${text}</script>`;
const engine = readFileSync(here("pkg/dist/zvf_bg.wasm")).toString("base64");
mkdirSync(here("dist"), { recursive: true });
writeFileSync(here("dist/index.html"), page(""));
copyFileSync(here("pkg/dist/zvf_bg.wasm"), here("dist/zvf_bg.wasm"));
writeFileSync(here("dist/inline.html"), page(data("module", engine) + data("store", "__STORE__", ' data-name=""')));
