/** Stores of the package `zvf`, as the page uses them. */
import { open, type Column as EngineColumn, type OpenOptions, type Query as EngineQuery, type Result as EngineResult, type Source, type Store as EngineStore } from "zvf";
import { byId } from "./dom.ts";
import { unzip } from "./zip.ts";
import type { Column, Description, Query, Result, Store } from "./store.ts";

const OPTIONS: OpenOptions = { memoryBudget: 256 << 20, cache: 64 << 20 };
const NO_WORD = 0xffffffff;
const MOST_FILES = 200_000;

export function checkedAddress(address: string): URL {
  const url = new URL(address, location.href);
  if (!/^https?:$/.test(url.protocol)) throw new Error(`the address of a store or volume begins with https: or http:, not with ${url.protocol}`);
  return url;
}

export const openAddress = async (address: string): Promise<Store> => wrap(checkedAddress(address).href.replace(/\/$/, ""));

export const openFile = async (file: File): Promise<Store> => wrap(await unzip(file), file.name);
export const openFolder = (files: File[]): Promise<Store> => wrap(files, files[0]?.webkitRelativePath.split("/")[0]);

/** Opens a folder that was dropped. */
export function openEntry(entry: FileSystemDirectoryEntry): Promise<Store> {
  const files = new Map<string, Blob>();
  return list(entry, "", files).then(() => wrap(files, entry.name));
}

async function list(folder: FileSystemDirectoryEntry, path: string, files: Map<string, Blob>): Promise<void> {
  const reader = folder.createReader();
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (!entries.length) return;
    for (const entry of entries) {
      if (entry.isDirectory) await list(entry as FileSystemDirectoryEntry, `${path}${entry.name}/`, files);
      else files.set(path + entry.name, await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail)));
      if (files.size > MOST_FILES) throw new Error(`the folder has more than ${MOST_FILES} files; drop a .zip of it`);
    }
  }
}

/** The store that the page itself contains, or undefined. */
export function embedded(): Promise<Store> | undefined {
  const bytes = contained("store");
  return bytes && unzip(new Blob([bytes])).then((files) => wrap(files, document.getElementById("store")?.dataset.name));
}

let engine: Promise<WebAssembly.Module> | undefined;

/** The engine, which the page contains in gzip. */
async function compiled(): Promise<WebAssembly.Module> {
  const packed = new Blob([contained("engine") ?? new Uint8Array()]);
  return WebAssembly.compile(await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

let script = "";

/** Sets the text of the script of the page, which the workers run as well: a page from a file can load nothing else. */
export function runWorkersFrom(text: string): void {
  script = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

/** The bytes in base64 of an element of the page, which is emptied. */
function contained(id: string): Uint8Array<ArrayBuffer> | undefined {
  const element = document.getElementById(id);
  const text = element?.textContent?.trim();
  if (!element || !text) return undefined;
  element.textContent = "";
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

async function wrap(source: Source, name?: string): Promise<Store> {
  byId("status").textContent = "Opening the store…";
  engine ??= compiled();
  const store = await open(source, { ...OPTIONS, module: await engine, worker: new Worker(script) });
  return {
    describe: () => describe(store, name),
    query: async (query, signal) => result(await store.query(translate(query), { signal })),
    count: (query, signal) => store.count(translate(query), { signal }),
    members: async (groups, signal) => {
      const { levels } = store.info;
      const found = await store.query({ groups, limit: 1, level: levels[levels.length - 1]?.level ?? 0, select: [] }, { signal });
      return Object.fromEntries(found.groups.map((group) => [group.id, group.members]));
    },
    traffic: () => store.stats,
  };
}

function translate({ sphere, ...rest }: Query): EngineQuery {
  return sphere ? { ...rest, sphere: { centre: sphere[0], radius: sphere[1] } } : rest;
}

async function describe(store: EngineStore, name: string | undefined): Promise<Description> {
  const { info } = store;
  const [attributes, groups, [low, high]] = await Promise.all([store.attributes(0), store.groups(0), info.bounds ?? measure(store)]);
  const inner = info.address.replace(/\/+$/, "").split("/").pop()!.replace(/\.(zv|zarr|zip)+$/, "");
  return {
    name: info.name ?? name ?? inner,
    geometry: info.kinds[0] ?? "",
    axes: info.axes.map((axis) => axis.name),
    units: info.axes.map((axis) => axis.unit ?? undefined),
    low, high,
    chunkShape: info.chunkShape,
    levels: info.levels,
    attributes: attributes.map((each) => ({ scope: each.family, name: each.name, type: each.dtype, channels: each.channels, unit: each.unit })),
    groups: groups.map((group) => ({ id: group.id, size: group.size, ...(group.name === null ? {} : { name: group.name }) })),
  };
}

/** The bounds of a store that declares none. */
async function measure(store: EngineStore): Promise<[number[], number[]]> {
  const { levels, axes } = store.info;
  const { positions } = await store.query({ level: levels[levels.length - 1]!.level, select: [], owners: false });
  const low = axes.map(() => Infinity);
  const high = axes.map(() => -Infinity);
  for (let at = 0; at < positions.length; at++) {
    const axis = at % axes.length;
    low[axis] = Math.min(low[axis]!, Number(positions[at]));
    high[axis] = Math.max(high[axis]!, Number(positions[at]));
  }
  return positions.length ? [low, high] : [axes.map(() => 0), axes.map(() => 1)];
}

function result(found: EngineResult): Result {
  const columns = (list: EngineColumn[]): Record<string, Column> => Object.fromEntries(list.map((each) => [each.name, column(each)]));
  const { positions } = found;
  return {
    positions: positions instanceof BigInt64Array || positions instanceof BigUint64Array ? Float64Array.from(positions, Number) : positions,
    level: found.level,
    dimensions: found.axes.length,
    objects: found.objects,
    partOffsets: found.partOffsets,
    partObjects: found.partObjects,
    objectIds: found.objectIds,
    links: found.links,
    ends: found.linkWidth,
    vertex: columns(found.vertex),
    object: columns(found.object),
  };
}

function column({ values, words, nulls }: EngineColumn): Column {
  if (words) return Array.from(values as Uint32Array, (code) => (code === NO_WORD ? null : (words[code] ?? null)));
  if (nulls?.some((isNull) => isNull)) return Array.from(values as ArrayLike<number | bigint>, (value, row) => (nulls[row] ? null : value));
  return values;
}
