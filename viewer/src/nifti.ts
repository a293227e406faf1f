/** NIfTI volumes: `.nii` and `.nii.gz`, versions 1 and 2, of either byte order. The map from voxels to positions is the
 * sform, else the qform, else the sizes of voxels, as in `zvf sample`. */
import { inverse, type Affine, type Vec3 } from "./math.ts";

/** Bytes of a file, and of the part of it that is read once it is unpacked. */
const MOST_BYTES = 512 << 20;
const MOST_VOXELS = 1 << 26;
const HEADER = 540;

export interface Volume {
  name: string;
  /** Voxels along each axis. */
  size: Vec3;
  /** The first volume of the file, the first axis fastest. */
  values: Float32Array;
  /** Maps voxel indices to positions. The index of a voxel is that of its centre. */
  toWorld: Affine;
  /** The length of a unit of positions in millimetres. */
  millimeters: number;
}

const TYPES = new Map<number, { of: new (bytes: ArrayBuffer) => ArrayLike<number | bigint>; bytes: number }>([
  [2, { of: Uint8Array, bytes: 1 }], [4, { of: Int16Array, bytes: 2 }], [8, { of: Int32Array, bytes: 4 }],
  [16, { of: Float32Array, bytes: 4 }], [64, { of: Float64Array, bytes: 8 }], [256, { of: Int8Array, bytes: 1 }],
  [512, { of: Uint16Array, bytes: 2 }], [768, { of: Uint32Array, bytes: 4 }], [1024, { of: BigInt64Array, bytes: 8 }],
  [1280, { of: BigUint64Array, bytes: 8 }],
]);

export const isNifti = (name: string): boolean => /\.nii(\.gz)?$/i.test(name);

/** Fetches a volume. A server may send no more than is allowed. */
export async function fetchNifti(address: URL): Promise<Volume> {
  const name = decodeURIComponent(address.pathname.split("/").pop()!);
  const answer = await fetch(address, { referrerPolicy: "no-referrer" });
  if (!answer.ok || !answer.body) throw new Error(`${name} cannot be read: the server answers ${answer.status}`);
  return readNifti(new Blob(await collect(answer.body, MOST_BYTES, name, true)), name);
}

export async function readNifti(file: Blob, name: string): Promise<Volume> {
  const first = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isPacked = first[0] === 0x1f && first[1] === 0x8b;
  const stream = (): ReadableStream<Uint8Array<ArrayBuffer>> => (isPacked ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream());
  const header = parse(await bytes(stream(), HEADER, name), name);
  const { start, voxels, type, isBig } = header;
  const end = start + voxels * type.bytes;
  const data = await bytes(stream(), end, name);
  if (data.length < end) throw new Error(`${name} ends early: its header states ${end} bytes, and it has ${data.length}`);
  const stored = data.slice(start, end);
  if (isBig && type.bytes > 1) for (let at = 0; at < stored.length; at += type.bytes) stored.subarray(at, at + type.bytes).reverse();
  const read = new type.of(stored.buffer);
  const values = Float32Array.from(read, (value) => Number(value) * header.slope + header.intercept);
  return { name: name.replace(/\.nii(\.gz)?$/i, ""), size: header.size, values, toWorld: header.toWorld, millimeters: header.millimeters };
}

/** The first bytes of a stream, as far as it has them. */
async function bytes(stream: ReadableStream<Uint8Array<ArrayBuffer>>, most: number, name: string): Promise<Uint8Array<ArrayBuffer>> {
  let parts: Uint8Array<ArrayBuffer>[];
  try {
    parts = await collect(stream, most, name, false);
  } catch (error) {
    throw new Error(`${name} cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`);
  }
  const whole = new Uint8Array(Math.min(parts.reduce((sum, part) => sum + part.length, 0), most));
  let at = 0;
  for (const part of parts) {
    whole.set(part.subarray(0, most - at), at);
    at += part.length;
  }
  return whole;
}

async function collect(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>, most: number, name: string, isAll: boolean,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const reader = stream.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  while (isAll || size < most) {
    const { done, value } = await reader.read();
    if (done) return parts;
    parts.push(value);
    size += value.length;
    if (isAll && size > most) {
      void reader.cancel();
      throw new Error(`${name} has more than ${most >> 20} MiB, which is the largest volume that the page reads`);
    }
  }
  void reader.cancel();
  return parts;
}

interface Header {
  size: Vec3;
  voxels: number;
  type: { of: new (bytes: ArrayBuffer) => ArrayLike<number | bigint>; bytes: number };
  start: number;
  isBig: boolean;
  slope: number;
  intercept: number;
  toWorld: Affine;
  millimeters: number;
}

function parse(head: Uint8Array<ArrayBuffer>, name: string): Header {
  const wrong = (what: string): Error => new Error(`${name} is no NIfTI volume that can be shown: ${what}`);
  const view = new DataView(head.buffer);
  const at = (offset: number, size: number): number => {
    if (offset + size > head.length) throw wrong("it ends inside its header");
    return offset;
  };
  const length = view.byteLength >= 4 ? [true, false].map((little) => view.getInt32(0, little)) : [0, 0];
  const isLittle = length[0] === 348 || length[0] === 540;
  if (!isLittle && length[1] !== 348 && length[1] !== 540) throw wrong("it does not begin with the length of a header");
  const isTwo = length[isLittle ? 0 : 1] === 540;
  const text = String.fromCharCode(...head.subarray(isTwo ? 4 : 344, isTwo ? 12 : 348));
  if (text.startsWith("ni")) throw wrong("its voxels are in another file; convert the pair to one .nii file");
  if (text !== (isTwo ? "n+2\0\r\n\x1a\n" : "n+1\0")) throw wrong("its mark is missing");
  const small = (offset: number) => view.getInt16(at(offset, 2), isLittle);
  const whole = (offset: number) => (isTwo ? view.getInt32(at(offset, 4), isLittle) : small(offset));
  const real = (offset: number) => (isTwo ? view.getFloat64(at(offset, 8), isLittle) : view.getFloat32(at(offset, 4), isLittle));
  const several = (offset: number, count: number) => Array.from({ length: count }, (_, k) => real(offset + k * (isTwo ? 8 : 4)));
  const dim = Array.from({ length: 8 }, (_, k) => (isTwo ? Number(view.getBigInt64(at(16 + 8 * k, 8), isLittle)) : small(40 + 2 * k)));
  const axes = dim[0]!;
  if (axes < 1 || axes > 7) throw wrong(`it has ${axes} axes`);
  const size = [1, 2, 3].map((axis) => (axis <= axes ? dim[axis]! : 1)) as Vec3;
  if (size.some((extent) => extent < 1)) throw wrong("an axis has no voxels");
  const voxels = size[0] * size[1] * size[2];
  if (voxels > MOST_VOXELS) throw wrong(`it has ${size.join(" × ")} voxels; at most ${MOST_VOXELS} are read`);
  const code = small(isTwo ? 12 : 70);
  const type = TYPES.get(code);
  if (!type) throw wrong(`its voxels have the type ${code}; integers and floats are shown`);
  const start = isTwo ? Number(view.getBigInt64(at(168, 8), isLittle)) : real(108);
  if (!Number.isInteger(start) || start < (isTwo ? 544 : 352)) throw wrong("its voxels begin inside its header");
  if (start + voxels * type.bytes > MOST_BYTES) throw wrong(`more than ${MOST_BYTES >> 20} MiB of it would be read`);
  const [given, shift] = [real(isTwo ? 176 : 112), real(isTwo ? 184 : 116)];
  const isScaled = given !== 0 && Number.isFinite(given);
  const pixdim = several(isTwo ? 104 : 76, 4);
  const [qform, sform] = isTwo ? [whole(344), whole(348)] : [whole(252), whole(254)];
  const toWorld = sform > 0 ? several(isTwo ? 400 : 280, 12)
    : qform > 0 ? rotation(several(isTwo ? 352 : 256, 6), pixdim)
      : [pixdim[1]!, 0, 0, 0, 0, pixdim[2]!, 0, 0, 0, 0, pixdim[3]!, 0];
  if (!inverse(toWorld)) throw wrong(`its ${sform > 0 ? "sform" : qform > 0 ? "qform" : "pixdim"} cannot be inverted`);
  const unit = (isTwo ? whole(500) : view.getUint8(at(123, 1))) & 7;
  return {
    size, voxels, type, start, isBig: !isLittle, slope: isScaled ? given : 1, intercept: isScaled && Number.isFinite(shift) ? shift : 0,
    toWorld, millimeters: unit === 1 ? 1000 : unit === 3 ? 1e-3 : 1,
  };
}

/** The map of a quaternion, an offset and the sizes of voxels. */
function rotation([b, c, d, ...offset]: number[], [sign, dx, dy, dz]: number[]): Affine {
  const squared = b! * b! + c! * c! + d! * d!;
  // A rotation by 180 degrees, whose axis may be rounded beyond length 1.
  const norm = Math.sqrt(Math.max(squared, 1));
  const [i, j, k, r] = [b! / norm, c! / norm, d! / norm, Math.sqrt(Math.max(1 - squared, 0))];
  const rows = [
    [r * r + i * i - j * j - k * k, 2 * (i * j - r * k), 2 * (i * k + r * j)],
    [2 * (i * j + r * k), r * r + j * j - i * i - k * k, 2 * (j * k - r * i)],
    [2 * (i * k - r * j), 2 * (j * k + r * i), r * r + k * k - i * i - j * j],
  ];
  const sizes = [dx!, dy!, sign! < 0 ? -dz! : dz!];
  return rows.flatMap((row, axis) => [...row.map((value, column) => value * sizes[column]!), offset[axis]!]);
}
