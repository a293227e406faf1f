// Every recorded store gives the results of the native reader: `ZVF=path/to/zvf node --test tests`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createReadStream, mkdtempSync, openAsBlob, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
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

/** The rows that the native reader writes as CSV: a list of texts for each name of a column. */
function rows(store) {
  const file = join(folder, "rows.csv");
  execFileSync(ZVF, ["query", store, "-o", file, "--quiet"], { stdio: ["ignore", "ignore", "pipe"] });
  const [names, ...lines] = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(","));
  return new Map(names.map((name, at) => [name, lines.map((line) => line[at])]));
}

function throws(work) {
  try {
    work();
    return false;
  } catch {
    return true;
  }
}

/** Compares numbers with the texts of a CSV, which are the shortest that give the same number. */
function compare(values, width, at, texts, what) {
  assert.equal(values.length / width, texts.length, `rows of ${what}`);
  for (let row = 0; row < texts.length; row++) {
    const [value, text] = [values[row * width + at], texts[row]];
    const isFlag = text === "true" || text === "false";
    const given = isFlag ? Number(text === "true") : values instanceof Float32Array ? Math.fround(Number(text)) : typeof value === "bigint" ? BigInt(text) : Number(text);
    assert.ok(Object.is(value, given) || value === given, `row ${row} of ${what}: ${value}, but ${text} in the native reader`);
  }
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

let compared = 0;
after(() => assert.ok(compared > 50, `${compared} attributes have names that the native reader has`));
for (const store of stores(folder)) {
  const name = relative(folder, store);
  test(`files of ${name}`, async () => {
    const expected = native("query", store, "--count");
    let counts;
    let found;
    try {
      const opened = await open(await files(store));
      [counts, found] = [await opened.count(), await opened.query()];
    } catch (error) {
      assert.ok(expected.error || throws(() => rows(store)), `the native reader reads it: ${error.message}`);
      return;
    }
    assert.equal(expected.error, undefined);
    for (const member of ["vertices", "objects", "links"]) {
      assert.equal(counts[member] ?? 0, expected.answer[member] ?? 0, member);
    }
    const columns = rows(store);
    found.axes.forEach((axis, at) => compare(found.positions, found.axes.length, at, columns.get(axis), axis));
    for (const { name, width, values, words, nulls } of found.vertex) {
      const texts = columns.get(`vertex.${name}`);
      if (width === 1 && !words && !nulls && texts) compare(values, 1, 0, texts, name);
      compared += texts ? 1 : 0;
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
