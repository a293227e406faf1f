/** Reads stores of the Zarr Vectors Format. */

import init, { type Batches, type Engine, open as openEngine } from "./zvf.js";
import { unlessPanicked } from "./panic.ts";
import { portOf } from "./port.ts";
import type {
  AttributeInfo, AttributeRange, BatchOptions, CallOptions, Counts, ErrorKind, GroupInfo, Numbers, OpenOptions, Plan,
  Port, Query, Result, Source, Stats, Store, StoreInfo,
} from "./types.ts";

export type * from "./types.ts";

/** Why a call failed. */
export class ZvfError extends Error {
  override readonly name = "ZvfError";
  readonly kind: ErrorKind;
  readonly key?: string;
  constructor(kind: ErrorKind, message: string, key?: string) {
    super(message);
    this.kind = kind;
    if (key !== undefined) this.key = key;
  }
}

interface Answer {
  json: string;
  buffers: Uint8Array[];
}

interface Slot {
  buffer: number;
  kind: string;
  width: number;
}

const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
} as const;

let ready: Promise<unknown> | undefined;

async function bytesOfModule(): Promise<BufferSource | URL> {
  const url = new URL("./zvf_bg.wasm", import.meta.url);
  if (url.protocol !== "file:" || !("process" in globalThis)) return url;
  const { readFile } = await import("node:fs/promises");
  return new Uint8Array(await readFile(url));
}

/** Opens a store. */
export async function open(source: Source, options: OpenOptions = {}): Promise<Store> {
  const { headers, signal, module, ...own } = options;
  ready ??= (module ? Promise.resolve(module) : bytesOfModule()).then((from) => init({ module_or_path: from }));
  await ready;
  return thrown(async () => {
    const port = portOf(source, headers);
    const engine = (await unlessPanicked(() => openEngine(called(port) as never, JSON.stringify(own)))) as Engine;
    const store = new OpenStore(engine, await call(engine, "info", {}, { signal }) as StoreInfo);
    return store;
  });
}

/** A port in the form in which the module calls it. */
function called(port: Port): object {
  return {
    name: port.name,
    get: async (key: string, start?: number, end?: number, unless?: string, signal?: AbortSignal) => {
      const range = start === undefined ? undefined : { start, ...(end !== undefined && { end }) };
      const piece = await port.read(key, range, signal, unless);
      return piece;
    },
    list: async (prefix: string, signal?: AbortSignal) => port.list?.(prefix, signal),
  };
}

async function thrown<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { kind, message, key } = (error ?? {}) as { kind?: ErrorKind; message?: string; key?: string };
    if (error instanceof ZvfError || kind === undefined) throw error;
    throw new ZvfError(kind, message ?? String(error), key);
  }
}

/** A promise that is rejected when a signal is aborted. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  const promise = new Promise<never>((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  promise.catch(() => {});
  return promise;
}

/** JSON has no infinite numbers and no large integers, so these become words. */
function encode(query: object): string {
  return JSON.stringify(query, (_, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (value instanceof BigInt64Array) return Array.from(value, String);
    if (typeof value === "number" && !Number.isFinite(value)) return String(value);
    return value;
  });
}

async function call(engine: Engine, method: string, query: object, options: CallOptions = {}): Promise<unknown> {
  return thrown(async () => {
    const answer = await unlessPanicked(() => engine.call(method, encode(query), aborted(options.signal)));
    return decode(answer as Answer);
  });
}

/** Replaces the numbers of buffers by typed arrays. */
function decode(answer: Answer): unknown {
  return JSON.parse(answer.json, (_, value: unknown) => {
    if (typeof value !== "object" || value === null || !("buffer" in value)) return value;
    const slot = value as Slot;
    const bytes = answer.buffers[slot.buffer];
    const array = ARRAYS[slot.kind as keyof typeof ARRAYS];
    return bytes && array ? (new array(bytes.buffer as ArrayBuffer) as Numbers) : value;
  });
}

class OpenStore implements Store {
  readonly info: StoreInfo;
  readonly #engine: Engine;

  constructor(engine: Engine, info: StoreInfo) {
    this.#engine = engine;
    this.info = info;
  }

  get stats(): Stats {
    const [requests = 0, bytes = 0, lists = 0] = this.#engine.stats();
    return { requests, bytes, lists };
  }

  query(query: Query = {}, options?: CallOptions): Promise<Result> {
    return call(this.#engine, "query", query, options) as Promise<Result>;
  }

  count(query: Query = {}, options?: CallOptions): Promise<Counts> {
    return call(this.#engine, "count", query, options) as Promise<Counts>;
  }

  explain(query: Query = {}, options?: CallOptions): Promise<Plan> {
    return call(this.#engine, "explain", query, options) as Promise<Plan>;
  }

  async *batches(query: Query = {}, options: BatchOptions = {}): AsyncIterableIterator<Result> {
    const { signal, ...sizes } = options;
    const request = encode({ ...query, ...sizes });
    const batches = (await thrown(() => unlessPanicked(() => this.#engine.batches(request)))) as Batches;
    try {
      for (;;) {
        const answer = await thrown(() => unlessPanicked(() => batches.next(aborted(signal))));
        if (answer === undefined) return;
        yield decode(answer as Answer) as Result;
      }
    } finally {
      batches.free();
    }
  }

  attributes(level = 0, options?: CallOptions): Promise<AttributeInfo[]> {
    return call(this.#engine, "attributes", { level }, options) as Promise<AttributeInfo[]>;
  }

  groups(level = 0, options?: CallOptions): Promise<GroupInfo[]> {
    return call(this.#engine, "groups", { level }, options) as Promise<GroupInfo[]>;
  }

  range(attribute: string, level?: number, options?: CallOptions): Promise<AttributeRange> {
    return call(this.#engine, "range", { attribute, level }, options) as Promise<AttributeRange>;
  }

  async close(): Promise<void> {
    this.#engine.free();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
