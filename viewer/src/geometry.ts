import { table } from "./gl.ts";
import type { Result } from "./store.ts";
import type { Box, Vec3 } from "./math.ts";

export type Shape = "paths" | "points" | "mesh";
export const NO_VALUE = -3e38;

/** The rows that the GPU draws, made from a result of a query; positions are relative to the scene. */
export class Geometry {
  readonly shape: Shape;
  readonly vertices: number;
  /** For each drawn vertex, its row in the result. */
  readonly rows: Uint32Array | undefined;
  readonly box: Box;
  private readonly gl: WebGL2RenderingContext;
  private readonly textures: WebGLTexture[] = [];
  private readonly buffers: WebGLBuffer[] = [];
  private readonly vao: WebGLVertexArrayObject;
  private valueBuffer: WebGLBuffer | undefined;
  private valueTable: WebGLTexture | undefined;
  private readonly indices: number;

  constructor(gl: WebGL2RenderingContext, readonly result: Result, isMesh: boolean, origin: Vec3) {
    this.gl = gl;
    const places = relative(result, origin);
    this.box = bounds(places);
    const owners = objectOfRows(result);
    this.vao = gl.createVertexArray();
    gl.bindVertexArray(this.vao);
    const faces = isMesh && result.links ? triangles(result.links, result.ends) : undefined;
    if (faces) {
      this.shape = "mesh";
      this.vertices = places.length / 3;
      this.indices = faces.length;
      this.attribute(0, places, 3);
      this.attribute(3, normals(places, faces), 3);
      this.integers(2, owners);
      this.valueBuffer = this.attribute(1, new Float32Array(this.vertices), 1);
      const buffer = gl.createBuffer();
      this.buffers.push(buffer);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    } else if (result.partOffsets || (result.links && result.links.length)) {
      this.shape = "paths";
      const { rows, flags } = result.partOffsets ? pathRows(result.partOffsets) : linkRows(result.links!, result.ends);
      this.rows = rows;
      this.vertices = flags.length;
      this.indices = Math.max(0, flags.length - 1) * 6;
      const radius = result.partOffsets ? undefined : radii(result);
      const points = new Float32Array(flags.length * 4);
      const ids = new Uint32Array(flags.length * 2);
      for (let at = 0; at < flags.length; at++) {
        const row = rows ? rows[at]! : at;
        points.set(places.subarray(row * 3, row * 3 + 3), at * 4);
        points[at * 4 + 3] = radius ? radius[row]! : 1;
        ids[at * 2] = owners[row]!;
        ids[at * 2 + 1] = flags[at]!;
      }
      this.textures.push(table(gl, points, 4), table(gl, ids, 2));
    } else {
      this.shape = "points";
      this.vertices = this.indices = places.length / 3;
      this.attribute(0, places, 3);
      this.integers(2, owners);
      this.valueBuffer = this.attribute(1, new Float32Array(this.vertices), 1);
    }
    gl.bindVertexArray(null);
  }

  /** Approximate bytes of the GPU and of the result. */
  get bytes(): number {
    return this.vertices * 60 + this.indices * (this.shape === "mesh" ? 4 : 0);
  }

  /** Sets the value of each row of the result, which colours it. */
  color(values: Float32Array): void {
    const gl = this.gl;
    if (this.shape === "paths") {
      const rows = this.rows;
      const drawn = rows ? Float32Array.from(rows, (row) => values[row]!) : values;
      if (this.valueTable) gl.deleteTexture(this.valueTable);
      this.valueTable = table(gl, drawn, 1);
    } else {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.valueBuffer!);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    }
  }

  draw(): void {
    const gl = this.gl;
    gl.bindVertexArray(this.vao);
    if (this.shape === "paths") {
      [this.textures[0]!, this.textures[1]!, this.valueTable ?? null].forEach((texture, at) => {
        gl.activeTexture(gl.TEXTURE2 + at);
        gl.bindTexture(gl.TEXTURE_2D, texture);
      });
      gl.drawArrays(gl.TRIANGLES, 0, this.indices);
    } else if (this.shape === "mesh") {
      gl.drawElements(gl.TRIANGLES, this.indices, gl.UNSIGNED_INT, 0);
    } else {
      gl.drawArrays(gl.POINTS, 0, this.indices);
    }
    gl.bindVertexArray(null);
  }

  free(): void {
    for (const texture of this.textures) this.gl.deleteTexture(texture);
    if (this.valueTable) this.gl.deleteTexture(this.valueTable);
    for (const buffer of this.buffers) this.gl.deleteBuffer(buffer);
    this.gl.deleteVertexArray(this.vao);
  }

  private buffer(at: number, data: Float32Array | Uint32Array): WebGLBuffer {
    const gl = this.gl;
    const buffer = gl.createBuffer();
    this.buffers.push(buffer);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(at);
    return buffer;
  }

  private attribute(at: number, data: Float32Array, size: number): WebGLBuffer {
    const buffer = this.buffer(at, data);
    this.gl.vertexAttribPointer(at, size, this.gl.FLOAT, false, 0, 0);
    return buffer;
  }

  private integers(at: number, data: Uint32Array): void {
    this.buffer(at, data);
    this.gl.vertexAttribIPointer(at, 1, this.gl.UNSIGNED_INT, 0, 0);
  }
}

function relative(result: Result, origin: Vec3): Float32Array {
  const { positions, dimensions } = result;
  const rows = positions.length / dimensions;
  const out = new Float32Array(rows * 3);
  for (let row = 0; row < rows; row++) {
    for (let axis = 0; axis < 3; axis++) {
      out[row * 3 + axis] = (axis < dimensions ? positions[row * dimensions + axis]! : 0) - origin[axis]!;
    }
  }
  return out;
}

function bounds(places: Float32Array): Box {
  const low: Vec3 = [Infinity, Infinity, Infinity];
  const high: Vec3 = [-Infinity, -Infinity, -Infinity];
  for (let at = 0; at < places.length; at++) {
    const axis = at % 3;
    if (places[at]! < low[axis]!) low[axis] = places[at]!;
    if (places[at]! > high[axis]!) high[axis] = places[at]!;
  }
  return { low, high };
}

/** The lower 32 bits of the object of each row; all ones for none. */
function objectOfRows(result: Result): Uint32Array {
  const rows = result.positions.length / result.dimensions;
  const out = new Uint32Array(rows).fill(0xfffffffe);
  if (result.partOffsets && result.partObjects) {
    for (let part = 0; part < result.partObjects.length; part++) {
      const id = Number(BigInt.asUintN(32, BigInt(result.partObjects[part]!)));
      out.fill(id, Number(result.partOffsets[part]), Number(result.partOffsets[part + 1]));
    }
  } else if (result.objectIds) {
    for (let row = 0; row < rows; row++) out[row] = Number(BigInt.asUintN(32, BigInt(result.objectIds[row]!)));
  }
  return out;
}

/** The object of one row, exactly; undefined for none. */
export function objectOf(result: Result, row: number): number | undefined {
  if (result.partOffsets && result.partObjects) {
    let [low, high] = [0, result.partObjects.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (Number(result.partOffsets[middle]) <= row) low = middle;
      else high = middle;
    }
    return Number(result.partObjects[low]);
  }
  const id = result.objectIds?.[row];
  return id === undefined || Number(id) < 0 ? undefined : Number(id);
}

function pathRows(offsets: ArrayLike<number | bigint>): { rows: undefined; flags: Uint8Array } {
  const flags = new Uint8Array(Number(offsets[offsets.length - 1] ?? 0));
  for (let part = 0; part + 1 < offsets.length; part++) {
    const [start, end] = [Number(offsets[part]), Number(offsets[part + 1])];
    if (end > start) {
      flags[start]! |= 1;
      flags[end - 1]! |= 2;
    }
  }
  return { rows: undefined, flags };
}

/** Links that continue each other become one line, so that its tube is closed. */
function linkRows(links: ArrayLike<number | bigint>, ends: number): { rows: Uint32Array; flags: Uint8Array } {
  const rows: number[] = [];
  const flags: number[] = [];
  let last = -1;
  // Links of skeletons lead from a child to its parent, so that a line continues at its first end.
  const isBackwards = links.length > ends && Number(links[ends + 1]) === Number(links[0]);
  const [first, second] = isBackwards ? [1, 0] : [0, 1];
  for (let at = 0; at + 1 < links.length; at += ends) {
    const [a, b] = [Number(links[at + first]), Number(links[at + second])];
    if (a === last) {
      flags[flags.length - 1] = flags[flags.length - 1]! & ~2;
      rows.push(b);
      flags.push(2);
    } else {
      rows.push(a, b);
      flags.push(1, 2);
    }
    last = b;
  }
  return { rows: Uint32Array.from(rows), flags: Uint8Array.from(flags) };
}

/** The attribute `radius`, relative to its median: neurites look as thick as they are. */
function radii(result: Result): Float32Array | undefined {
  const column = result.vertex.radius;
  if (!column || !column.length) return undefined;
  const values = Float32Array.from({ length: column.length }, (_, row) => Number(column[row]) || 0);
  const median = values.slice().sort()[values.length >> 1]! || 1;
  return values.map((value) => Math.min(Math.max(value / median, 0.2), 12));
}

function triangles(links: ArrayLike<number | bigint>, ends: number): Uint32Array | undefined {
  if (ends < 3) return undefined;
  const out = new Uint32Array((links.length / ends) * (ends - 2) * 3);
  let to = 0;
  for (let at = 0; at < links.length; at += ends) {
    for (let corner = 2; corner < ends; corner++) {
      out[to++] = Number(links[at]);
      out[to++] = Number(links[at + corner - 1]);
      out[to++] = Number(links[at + corner]);
    }
  }
  return out;
}

function normals(places: Float32Array, faces: Uint32Array): Float32Array {
  const out = new Float32Array(places.length);
  for (let at = 0; at < faces.length; at += 3) {
    const [a, b, c] = [faces[at]! * 3, faces[at + 1]! * 3, faces[at + 2]! * 3];
    const u = [0, 1, 2].map((axis) => places[b + axis]! - places[a + axis]!);
    const v = [0, 1, 2].map((axis) => places[c + axis]! - places[a + axis]!);
    for (let axis = 0; axis < 3; axis++) {
      const [i, j] = [(axis + 1) % 3, (axis + 2) % 3];
      const n = u[i]! * v[j]! - u[j]! * v[i]!;
      for (const corner of [a, b, c]) out[corner + axis]! += n;
    }
  }
  return out;
}
