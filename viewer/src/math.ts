/** Vectors of three numbers and column-major matrices of sixteen. */
export type Vec3 = [number, number, number];
export type Mat4 = Float32Array;

export const add = (a: Vec3, b: Vec3): Vec3 => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const subtract = (a: Vec3, b: Vec3): Vec3 => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a: Vec3, by: number): Vec3 => [a[0] * by, a[1] * by, a[2] * by];
export const dot = (a: Vec3, b: Vec3): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a: Vec3): number => Math.hypot(a[0], a[1], a[2]);
export const clamp = (value: number, low: number, high: number): number =>
  Math.min(Math.max(value, low), high);

export function multiply(a: Mat4, b: Mat4): Mat4 {
  const product = new Float32Array(16);
  for (let column = 0; column < 4; column++) {
    for (let row = 0; row < 4; row++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[k * 4 + row]! * b[column * 4 + k]!;
      product[column * 4 + row] = sum;
    }
  }
  return product;
}

/** Returns the clip coordinates of a point. */
export function transform(m: Mat4, p: Vec3): [number, number, number, number] {
  const at = (row: number) => m[row]! * p[0] + m[row + 4]! * p[1] + m[row + 8]! * p[2] + m[row + 12]!;
  return [at(0), at(1), at(2), at(3)];
}

/** A map of three coordinates: the rows of a matrix of three rows and four columns. */
export type Affine = number[];

export const affine = (m: Affine, p: Vec3): Vec3 =>
  [0, 4, 8].map((row) => m[row]! * p[0] + m[row + 1]! * p[1] + m[row + 2]! * p[2] + m[row + 3]!) as Vec3;

const cross = (a: Vec3, b: Vec3): Vec3 => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

/** Returns the map that undoes another, or undefined for one that is flat. */
export function inverse(m: Affine): Affine | undefined {
  const [x, y, z] = [0, 4, 8].map((row) => m.slice(row, row + 3) as Vec3) as [Vec3, Vec3, Vec3];
  const determinant = dot(x, cross(y, z));
  const size = length(x) * length(y) * length(z);
  // Rounding keeps the rows of a flat map from being exactly in one plane.
  if (!Number.isFinite(size) || !(Math.abs(determinant) > size * 1e-9)) return undefined;
  const columns = [cross(y, z), cross(z, x), cross(x, y)].map((column) => scale(column, 1 / determinant));
  const shift: Vec3 = [m[3]!, m[7]!, m[11]!];
  const found = [0, 1, 2].flatMap((axis) => {
    const row = columns.map((column) => column[axis]!) as Vec3;
    return [...row, -dot(row, shift)];
  });
  return found.every(Number.isFinite) ? found : undefined;
}

/** A box, by its lowest and highest corner. */
export interface Box {
  low: Vec3;
  high: Vec3;
}

export function center(box: Box): Vec3 {
  return scale(add(box.low, box.high), 0.5);
}

export function union(a: Box, b: Box): Box {
  const pick = (choose: (...values: number[]) => number, p: Vec3, q: Vec3): Vec3 =>
    [choose(p[0], q[0]), choose(p[1], q[1]), choose(p[2], q[2])];
  return { low: pick(Math.min, a.low, b.low), high: pick(Math.max, a.high, b.high) };
}

/** Returns what both boxes contain, or undefined. */
export function intersection(a: Box, b: Box): Box | undefined {
  const low = a.low.map((value, axis) => Math.max(value, b.low[axis]!)) as Vec3;
  const high = a.high.map((value, axis) => Math.min(value, b.high[axis]!)) as Vec3;
  return low.every((value, axis) => value <= high[axis]!) ? { low, high } : undefined;
}

export function corners(box: Box): Vec3[] {
  return [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => [
    bits & 1 ? box.high[0] : box.low[0],
    bits & 2 ? box.high[1] : box.low[1],
    bits & 4 ? box.high[2] : box.low[2],
  ]);
}

/** A hash of an object's id that is uniform over 32 bits; the shaders compute the same one. */
export function hash(id: number): number {
  let h = id >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}
