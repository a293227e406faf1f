/** Files of a zip. Stored ones are parts of the zip and are not copied. */

const MOST_FILES = 200_000;
/** Bytes that compressed files may have in total. */
const MOST_BYTES = 512 << 20;
const END = 22;

const damaged = (what: string): Error => new Error(`the zip is damaged: ${what}`);

async function view(zip: Blob, start: number, size: number): Promise<DataView> {
  if (start < 0 || size < 0 || start + size > zip.size) throw damaged("a part lies outside of the file");
  return new DataView(await zip.slice(start, start + size).arrayBuffer());
}

/** Finds the directory: its place, its size and the number of files. */
async function directory(zip: Blob): Promise<[number, number, number]> {
  const size = Math.min(zip.size, END + 0xffff);
  const tail = await view(zip, zip.size - size, size);
  for (let at = size - END; at >= 0; at--) {
    if (tail.getUint32(at, true) !== 0x06054b50) continue;
    const found: [number, number, number] = [tail.getUint32(at + 16, true), tail.getUint32(at + 12, true), tail.getUint16(at + 10, true)];
    if (found[0] !== 0xffffffff && found[2] !== 0xffff) return found;
    if (at < 20) throw damaged("its directory is missing");
    const large = await view(zip, Number(tail.getBigUint64(at - 12, true)), 56);
    if (large.getUint32(0, true) !== 0x06064b50) throw damaged("its directory is missing");
    return [Number(large.getBigUint64(48, true)), Number(large.getBigUint64(40, true)), Number(large.getBigUint64(32, true))];
  }
  throw new Error("the file is not a zip");
}

/** Returns the files by name. */
export async function unzip(zip: Blob): Promise<Map<string, Blob>> {
  const [start, size, count] = await directory(zip);
  if (count > MOST_FILES) throw new Error(`the zip has ${count} files; at most ${MOST_FILES} are read`);
  const list = await view(zip, start, size);
  const files = new Map<string, Blob>();
  let budget = MOST_BYTES;
  for (let at = 0, k = 0; k < count; k++) {
    if (at + 46 > size || list.getUint32(at, true) !== 0x02014b50) throw damaged("its directory is cut");
    const method = list.getUint16(at + 10, true);
    const [nameSize, extraSize, commentSize] = [list.getUint16(at + 28, true), list.getUint16(at + 30, true), list.getUint16(at + 32, true)];
    if (at + 46 + nameSize + extraSize + commentSize > size) throw damaged("its directory is cut");
    const name = new TextDecoder().decode(new Uint8Array(list.buffer, at + 46, nameSize));
    const sizes = { packed: list.getUint32(at + 20, true), whole: list.getUint32(at + 24, true), place: list.getUint32(at + 42, true) };
    widen(sizes, list, at + 46 + nameSize, extraSize);
    at += 46 + nameSize + extraSize + commentSize;
    if (name.endsWith("/")) continue;
    const local = await view(zip, sizes.place, 30);
    const first = sizes.place + 30 + local.getUint16(26, true) + local.getUint16(28, true);
    if (first + sizes.packed > zip.size) throw damaged(`${name} is cut`);
    const data = zip.slice(first, first + sizes.packed);
    if (method === 0) files.set(name, data);
    else if (method === 8) {
      const whole = await inflate(data, budget, name);
      budget -= whole.size;
      files.set(name, whole);
    } else throw new Error(`${name} in the zip is compressed by method ${method}, which is not supported`);
  }
  return below(files);
}

/** Sizes of large files follow the name. */
function widen(sizes: { packed: number; whole: number; place: number }, list: DataView, start: number, size: number): void {
  for (let at = start; at + 4 <= start + size;) {
    const [kind, length] = [list.getUint16(at, true), list.getUint16(at + 2, true)];
    at += 4;
    const end = Math.min(at + length, start + size);
    if (kind === 1) {
      for (const name of ["whole", "packed", "place"] as const) {
        if (sizes[name] !== 0xffffffff || at + 8 > end) continue;
        sizes[name] = Number(list.getBigUint64(at, true));
        at += 8;
      }
    }
    at = end;
  }
}

async function inflate(data: Blob, most: number, name: string): Promise<Blob> {
  const reader = data.stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error(`${name} and the files before it have more than ${MOST_BYTES} bytes; store them without compression`);
    }
    parts.push(value);
  }
}

/** A zip may hold the folder of the store instead of its contents. */
function below(files: Map<string, Blob>): Map<string, Blob> {
  if (files.has("zarr.json")) return files;
  const roots = [...files.keys()].filter((name) => /^[^/]+\/zarr\.json$/.test(name));
  if (roots.length !== 1) return files;
  const folder = roots[0]!.slice(0, -"zarr.json".length);
  return new Map([...files].filter(([name]) => name.startsWith(folder)).map(([name, file]) => [name.slice(folder.length), file]));
}
