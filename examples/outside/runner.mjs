// A runner of docs/conformance.md: `info`, and positions of points of 0.9, drafts and 0.10, as cells without compression
// and shards.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const SCOPE = {
  generation: ["0.9", "drafts", "0.10"], geometry: ["points"], query: ["info", "all", "bbox"],
  part: ["axes", "levels", "positions"],
  without: ["compression", "sharding", "explicit fragments", "attribute chunking"],
};

class Unsupported extends Error {}

const READ = {
  float32: [4, (view, at) => view.getFloat32(at, true)],
  float64: [8, (view, at) => view.getFloat64(at, true)],
  int32: [4, (view, at) => view.getInt32(at, true)],
  uint16: [2, (view, at) => view.getUint16(at, true)],
};

const metadata = (node) => JSON.parse(readFileSync(join(node, "zarr.json"), "utf8"));

// What describes an array: 0.10 has it in an object.
const described = (node) => node.attributes.zarr_vectors ?? node.attributes;

// Cells by chunk: the only item of a frame of byte strings.
function cells(array) {
  const node = metadata(array);
  if (node.codecs.some(({ name }) => !["vlen-bytes", "crc32c"].includes(name))) {
    throw new Unsupported("compressed cells and shards");
  }
  const { chunk_grid_origin: origin, nonempty_chunks: chunks } = described(node);
  return new Map(
    chunks.map((chunk) => {
      const cell = chunk.split(".").map((at, axis) => String(Number(at) - (origin?.[axis] ?? 0)));
      const frame = readFileSync(join(array, "c", ...cell));
      return [chunk, new DataView(frame.buffer, frame.byteOffset + 8, frame.readUInt32LE(4))];
    }),
  );
}

function fragmentRows(blob) {
  const [count, ranges] = [blob.getUint32(8, true), blob.getUint32(12, true)];
  if (ranges < count) throw new Unsupported("fragments that are lists of rows");
  const table = 16 + Math.floor((count + 63) / 64) * 8;
  return Array.from({ length: ranges }, (_, range) => {
    const [first, rows] = [0, 8].map((field) => Number(blob.getBigInt64(table + 16 * range + field, true)));
    return Array.from({ length: rows }, (_, row) => first + row);
  }).flat();
}

// Positions of a level; one of refinement `add` also has those of the next coarser level.
function points(store, level, axes) {
  const vertices = join(store, String(level), "vertices");
  const type = READ[described(metadata(vertices)).dtype ?? "float32"];
  if (!type) throw new Unsupported("other types of coordinates");
  const [size, read] = type;
  const indexes = cells(join(store, String(level), "vertex_fragments"));
  const positions = [];
  for (const [chunk, cell] of cells(vertices)) {
    for (const row of fragmentRows(indexes.get(chunk))) {
      positions.push(axes.map((_, axis) => read(cell, (row * axes.length + axis) * size)));
    }
  }
  const { refinement } = metadata(join(store, String(level))).attributes.zarr_vectors_level ?? {};
  return refinement === "add" ? [...positions, ...points(store, level + 1, axes)] : positions;
}

function answer(store, level, query) {
  const { zarr_vectors: about, multiscales } = metadata(store).attributes;
  const axes = (about.axes ?? multiscales[0].axes).map(({ name }) => name);
  if (query.kind === "info") {
    const isLevel = (name) => /^\d+$/.test(name) && existsSync(join(store, name, "zarr.json"));
    return { axes, levels: readdirSync(store).filter(isLevel).map(Number).sort((a, b) => a - b) };
  }
  const isKnown = ["all", "bbox"].includes(query.kind) && query.shape === "points" && !query.chunked_by;
  if (!isKnown || !/^0\.(9|10)\./.test(about.zv_version)) {
    throw new Unsupported("other than info, and all or bbox of points of 0.9 and 0.10");
  }
  const positions = points(store, level, axes);
  if (query.kind === "all") return { positions };
  const inside = (p) => p.every((x, axis) => query.lower[axis] <= x && x <= query.upper[axis]);
  return { positions: positions.filter(inside) };
}

function reply({ store, level, query }) {
  if (query.kind === "scope") return { scope: SCOPE };
  try {
    return answer(store, level, query);
  } catch (error) {
    return error instanceof Unsupported ? { unsupported: error.message } : { error: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(reply(JSON.parse(line))));
}
