/** Reads stores of the Zarr Vectors Format. */

import { openHere, type Answer, type Engine } from "./engine.ts";
import type {
  AttributeInfo, AttributeRange, BatchOptions, CallOptions, Counts, ErrorKind, GroupInfo, Numbers, OpenOptions, Plan,
  Query, Result, Source, Stats, Store, StoreInfo,
} from "./types.ts";
import { openIn } from "./worker.ts";

export type * from "./types.ts";
export { serve } from "./worker.ts";

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

interface Slot {
  buffer: number;
  kind: string;
  width: number;
}

const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
} as const;

/** Opens a store. */
export async function open(source: Source, options: OpenOptions = {}): Promise<Store> {
  return thrown(async () => {
    const engine = await (options.worker ? openIn(options.worker, source, options) : openHere(source, options));
    return new OpenStore(engine, await call(engine, "info", {}, options) as StoreInfo);
  });
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
  return thrown(async () => decode(await engine.call(method, encode(query), options.signal)));
}

/** Replaces the numbers of buffers by typed arrays. */
function decode(answer: Answer): unknown {
  return JSON.parse(answer.json, (_, value: unknown) => {
    if (typeof value !== "object" || value === null || !("buffer" in value)) return value;
    const slot = value as Slot;
    const bytes = answer.buffers[slot.buffer];
    const array = ARRAYS[slot.kind as keyof typeof ARRAYS];
    return bytes && array ? (new array(bytes.buffer) as Numbers) : value;
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
    return this.#engine.stats();
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
    const batches = await thrown(() => this.#engine.batches(request));
    try {
      for (;;) {
        const answer = await thrown(() => batches.next(signal));
        if (answer === undefined) return;
        yield decode(answer) as Result;
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
