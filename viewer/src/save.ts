import { make } from "./dom.ts";
import { objectOf } from "./geometry.ts";
import type { Description, Result } from "./store.ts";

export function download(name: string, parts: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const quoted = (value: unknown): string => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** A row for each vertex: the columns that `zvf query -o` writes. */
export function csv(result: Result, description: Description): string[] {
  const { dimensions, positions } = result;
  const rows = positions.length / dimensions;
  const part = new Uint32Array(rows);
  const offsets = result.partOffsets;
  if (offsets) for (let p = 0; p + 1 < offsets.length; p++) part.fill(p, Number(offsets[p]), Number(offsets[p + 1]));
  const vertex = Object.entries(result.vertex);
  const hasObjects = !!result.partObjects || !!result.objectIds;
  const header = [...description.axes, ...(offsets ? ["part"] : []), ...(hasObjects ? ["object_id"] : []), ...vertex.map(([name]) => `vertex.${name}`)];
  const lines = [header.map(quoted).join(",") + "\n"];
  for (let row = 0; row < rows; row++) {
    const cells: unknown[] = Array.from({ length: dimensions }, (_, axis) => positions[row * dimensions + axis]);
    if (offsets) cells.push(part[row]);
    if (hasObjects) cells.push(objectOf(result, row));
    for (const [, column] of vertex) {
      const channels = column.length / rows;
      cells.push(channels === 1 ? column[row] : Array.from({ length: channels }, (_, k) => column[row * channels + k]).join(" "));
    }
    lines.push(cells.map(quoted).join(",") + "\n");
  }
  return lines;
}

/** Binary PLY with vertices, their numeric attributes, and faces or edges. */
export function ply(result: Result): BlobPart[] {
  const { dimensions, positions, links, ends } = result;
  const rows = positions.length / dimensions;
  const numeric = Object.entries(result.vertex).filter(([, column]) => column.length === rows && typeof column[0] !== "string");
  const edges: number[] = [];
  if (result.partOffsets) {
    for (let part = 0; part + 1 < result.partOffsets.length; part++) {
      for (let row = Number(result.partOffsets[part]); row + 1 < Number(result.partOffsets[part + 1]); row++) edges.push(row, row + 1);
    }
  } else if (links && ends === 2) for (let at = 0; at < links.length; at++) edges.push(Number(links[at]));
  const faces = links && ends > 2 ? links.length / ends : 0;
  const name = (text: string): string => text.replaceAll(/[^\w]/g, "_");
  const header = [
    "ply", "format binary_little_endian 1.0", `element vertex ${rows}`,
    ...["x", "y", "z"].map((axis) => `property double ${axis}`), ...numeric.map(([text]) => `property float ${name(text)}`),
    ...(faces ? [`element face ${faces}`, "property list uchar uint vertex_indices"] : []),
    ...(edges.length ? [`element edge ${edges.length / 2}`, "property uint vertex1", "property uint vertex2"] : []),
    "end_header", "",
  ].join("\n");
  const vertices = new DataView(new ArrayBuffer(rows * (24 + 4 * numeric.length)));
  let to = 0;
  for (let row = 0; row < rows; row++) {
    for (let axis = 0; axis < 3; axis++, to += 8) vertices.setFloat64(to, axis < dimensions ? positions[row * dimensions + axis]! : 0, true);
    for (const [, column] of numeric) {
      vertices.setFloat32(to, Number(column[row] ?? NaN), true);
      to += 4;
    }
  }
  const polygons = new DataView(new ArrayBuffer(faces * (1 + 4 * ends)));
  for (let face = 0, at = 0; face < faces; face++) {
    polygons.setUint8(at++, ends);
    for (let corner = 0; corner < ends; corner++, at += 4) polygons.setUint32(at, Number(links![face * ends + corner]), true);
  }
  return [header, vertices.buffer, polygons.buffer, Uint32Array.from(edges).buffer];
}

/** Millimetres of a unit. */
export const PER_MILLIMETER: Record<string, number> = { millimeter: 1, micrometer: 1e-3, nanometer: 1e-6, centimeter: 10, meter: 1000 };

/** TrackVis: a grid of 1 mm voxels around the data, whose affine is the identity and a shift. */
export function trk(result: Result, description: Description): BlobPart[] {
  const { positions, dimensions, partOffsets } = result;
  if (!partOffsets) throw new Error(".trk holds paths only; choose .ply or .csv for this layer");
  const by = PER_MILLIMETER[description.units[0] ?? ""] ?? 1;
  const rows = positions.length / dimensions;
  const at = (row: number, axis: number): number => (axis < dimensions ? positions[row * dimensions + axis]! * by : 0);
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (let row = 0; row < rows; row++) {
    for (let axis = 0; axis < 3; axis++) {
      low[axis] = Math.min(low[axis]!, at(row, axis));
      high[axis] = Math.max(high[axis]!, at(row, axis));
    }
  }
  const start = low.map((value) => (Number.isFinite(value) ? Math.floor(value) - 1 : 0));
  const columns = Object.entries(result.vertex).filter(([, column]) => column.length === rows && typeof column[0] !== "string").slice(0, 10);
  const header = new DataView(new ArrayBuffer(1000));
  const text = (offset: number, value: string, most: number) =>
    [...new TextEncoder().encode(value)].slice(0, most).forEach((byte, k) => header.setUint8(offset + k, byte));
  text(0, "TRACK", 6);
  for (let axis = 0; axis < 3; axis++) {
    header.setInt16(6 + axis * 2, Math.min(32767, Math.max(1, Math.ceil((high[axis]! || 0) - start[axis]!) + 2)), true);
    header.setFloat32(12 + axis * 4, 1, true);
    header.setFloat32(440 + axis * 20, 1, true);
    header.setFloat32(440 + axis * 16 + 12, start[axis]! + 0.5, true);
  }
  header.setFloat32(500, 1, true);
  header.setInt16(36, columns.length, true);
  columns.forEach(([name], k) => text(38 + k * 20, name, 19));
  text(948, "RAS", 4);
  text(952, "RAS", 4);
  const paths = partOffsets.length - 1;
  header.setInt32(988, paths, true);
  header.setInt32(992, 2, true);
  header.setInt32(996, 1000, true);
  const body = new DataView(new ArrayBuffer(paths * 4 + rows * (12 + 4 * columns.length)));
  let to = 0;
  for (let path = 0; path < paths; path++) {
    const [first, end] = [Number(partOffsets[path]), Number(partOffsets[path + 1])];
    body.setInt32(to, end - first, true);
    to += 4;
    for (let row = first; row < end; row++) {
      for (let axis = 0; axis < 3; axis++, to += 4) body.setFloat32(to, at(row, axis) - start[axis]!, true);
      for (const [, column] of columns) {
        body.setFloat32(to, Number(column[row] ?? NaN), true);
        to += 4;
      }
    }
  }
  return [header.buffer, body.buffer];
}
