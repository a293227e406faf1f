/** Builds the page from `src` and from the package that `pkg/build.sh` wrote to `pkg/dist`.
 *
 * The page is one file, `crates/zvf-serve/src/viewer.html`, which the command contains. It has the
 * engine, as gzip in base64, in an element of its own, and an empty element for a store:
 * `zvf export viewer --inline` fills it with a zip. Such elements are data, which the content
 * security policy does not cover; script and style are allowed by their hashes. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
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

const data = (id, name, text) => `<script type="application/octet-stream" id="${id}"${name}>${text}</script>`;
const engine = gzipSync(readFileSync(here("pkg/dist/zvf_bg.wasm")), { level: 9 }).toString("base64");
const elements = data("store", ' data-name=""', "") + data("engine", "", engine);

/** The page without its engine, and the engine, unpacked: versions of zlib pack the same bytes differently. */
function parts(text) {
  const [before, rest] = text.split('id="engine">');
  const end = rest.indexOf("</script>");
  return { page: Buffer.from(before + rest.slice(end)), engine: gunzipSync(Buffer.from(rest.slice(0, end), "base64")) };
}

const checkedIn = here("../crates/zvf-serve/src/viewer.html");
const [file] = process.argv.slice(2);
if (file === "--check") {
  const [made, stored] = [page(elements), readFileSync(checkedIn, "utf8")].map(parts);
  for (const name of ["page", "engine"]) {
    if (!made[name].equals(stored[name])) {
      throw new Error(`the ${name} in crates/zvf-serve/src/viewer.html is not what the sources give; build it again as viewer/README.md says`);
    }
    console.log(`the ${name} has the same ${stored[name].length} bytes`);
  }
} else writeFileSync(file ?? checkedIn, page(elements));
