// Every recorded store gives the results of the native reader: `ZVF=path/to/zvf node --test tests`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createReadStream, mkdtempSync, openAsBlob, readdirSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";

import { open } from "../dist/index.js";

const ZVF = process.env.ZVF ?? "zvf";
const TESTDATA = new URL("../../../testdata/", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "zvf-pkg-"));
after(() => rmSync(folder, { recursive: true }));
for (const name of readdirSync(TESTDATA).filter((name) => /^zvf-.*\.tar\.gz$/.test(name))) {
  execFileSync("tar", ["-xzf", join(TESTDATA, name), "-C", folder]);
}

/** The folders with a store, the outermost ones. */
function stores(from) {
  const children = readdirSync(from, { withFileTypes: true });
  if (children.some(({ name }) => name === "zarr.json")) return [from];
  return children.filter((child) => child.isDirectory()).flatMap(({ name }) => stores(join(from, name)));
}

function native(...words) {
  try {
    return { answer: JSON.parse(execFileSync(ZVF, [...words, "--json"], { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 })) };
  } catch (error) {
    return { error: String(error.stderr) };
  }
}

async function files(root) {
  const found = new Map();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile()) found.set(relative(root, path), await openAsBlob(path));
  }
  return found;
}

/** A static server with ranges. */
const requests = { count: 0 };
const server = createServer((request, response) => {
  requests.count += 1;
  const path = join(folder, decodeURIComponent(new URL(request.url, "http://host").pathname));
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status?.isFile()) return response.writeHead(404).end();
  const asked = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "");
  if (asked === null) {
    response.writeHead(200, { "content-length": status.size });
    return createReadStream(path).pipe(response);
  }
  const start = asked[1] === "" ? Math.max(0, status.size - Number(asked[2])) : Number(asked[1]);
  const end = asked[1] === "" || asked[2] === "" ? status.size - 1 : Math.min(Number(asked[2]), status.size - 1);
  if (start > end) return response.writeHead(416, { "content-range": `bytes */${status.size}` }).end();
  response.writeHead(206, { "content-range": `bytes ${start}-${end}/${status.size}`, "content-length": end - start + 1 });
  createReadStream(path, { start, end }).pipe(response);
});
before(() => new Promise((resolve) => server.listen(0, "127.0.0.1", resolve)));
after(() => server.close());

for (const store of stores(folder)) {
  const name = relative(folder, store);
  test(`files of ${name}`, async () => {
    const expected = native("query", store, "--count");
    let counts;
    try {
      counts = await (await open(await files(store))).count();
    } catch (error) {
      assert.ok(expected.error, `the native reader reads it: ${error.message}`);
      return;
    }
    assert.equal(expected.error, undefined);
    for (const member of ["vertices", "objects", "links"]) {
      assert.equal(counts[member] ?? 0, expected.answer[member] ?? 0, member);
    }
  });
  test(`${name} over a static server`, async () => {
    const address = `http://127.0.0.1:${server.address().port}/${name}`;
    let found;
    try {
      found = await (await open(address)).query({ select: [] });
    } catch (error) {
      // Stores before 0.9 need listings, which static servers do not have.
      assert.match(error.message, /list/);
      return;
    }
    const local = await (await open(await files(store))).query({ select: [] });
    assert.deepEqual(found.positions, local.positions);
    assert.deepEqual(found.partOffsets, local.partOffsets);
    assert.deepEqual(found.links, local.links);
  });
}
