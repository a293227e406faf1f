/** The types of the package `zvf`. Names and results are those of the Python package. */

/** Numbers of one kind, as an attribute of a store has them. Complex and 16-bit floats are converted. */
export type Numbers =
  | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array | Float32Array | Float64Array;

/** The ways in which a store can be opened. */
export type Source =
  /** The address of a folder with a `zarr.json`, on a server that answers ranges. */
  | string
  | URL
  /** A folder that `showDirectoryPicker` returned. */
  | FileSystemDirectoryHandle
  /** The files of a folder, from a drop or `<input webkitdirectory>`, by their relative paths. */
  | readonly File[]
  | ReadonlyMap<string, Blob>
  /** Any other source of bytes. */
  | Port;

/** What reads the objects of a store. Keys are relative to the root of the store. */
export interface Port {
  /** The name of the store in messages. */
  readonly name: string;
  /**
   * Reads an object or the bytes `start` to `end` of it; `undefined` if it does not exist. A range is
   * cut at the end of the object. With a negative `start` and without `end`, the last bytes. `null` if
   * the object still has the tag `unless`; a port without tags ignores it.
   */
  read(key: string, range: Range | undefined, signal: AbortSignal | undefined, unless?: string): Promise<Piece | null | undefined>;
  /** Lists the objects below a prefix, with their sizes. Absent where objects cannot be listed. */
  list?(prefix: string, signal: AbortSignal | undefined): Promise<[key: string, size: number][]>;
}

export interface Range {
  start: number;
  end?: number;
}

/** An object or a part of one. */
export interface Piece {
  bytes: Uint8Array;
  /** The place of the first byte in the object. */
  start: number;
  /** The size of the whole object. */
  size: number;
  /** Identifies the state of the object, if the source knows it. */
  etag?: string;
  /** Time of the last change in milliseconds since 1970; 0 if unknown. */
  modified?: number;
}

export interface OpenOptions {
  /** Maximum number of bytes that one call may read and one chunk may decode to; 256 MiB unless given. */
  memoryBudget?: number;
  /** Size of the cache of decoded cells in bytes; 64 MiB unless given. 0 disables the cache. */
  cache?: number;
  /** Maximum number of concurrent requests. */
  concurrency?: number;
  /** Use the copy of the metadata in the root; true unless given. */
  nodeCopy?: boolean;
  /** Check a sealed store against its inventory; true unless given. */
  checkSeal?: boolean;
  /** Headers of every request, such as `Authorization`. */
  headers?: Record<string, string>;
  /** The bytes of `zvf_bg.wasm`; fetched from beside the package unless given. The first call decides. */
  module?: BufferSource | WebAssembly.Module;
  /**
   * Runs the engine in this worker, whose script calls `serve()`, so that decoding does not delay the
   * page. The worker serves this store only; it ends when the store is closed, and when it does not stop
   * a call within ten seconds after it was cancelled. A `Port` of the caller cannot be used.
   */
  worker?: Worker;
  signal?: AbortSignal;
}

export type Bounds = readonly [lower: readonly number[], upper: readonly number[]];
export type Family = "vertex" | "fragment" | "link" | "object" | "group";

/** The selection and the contents of the result of a query. All selections must hold, except that `groups` adds to `objects`. */
export interface Query {
  /** Select by a box. Bounds may be infinite. */
  bbox?: Bounds;
  /** Select by a sphere. */
  sphere?: { centre: readonly number[]; radius: number };
  /** Select the `k` vertices, paths or links nearest to a position; 1 unless given. */
  nearest?: readonly number[];
  k?: number;
  /** Treatment of geometry that crosses the border: return it whole, drop it, or cut it. */
  mode?: "touch" | "within" | "clip";
  /** With `mode: "clip"`: cut segments and faces at the border, or drop them. */
  clip?: "split" | "drop";
  /** Objects by id, in the order in which they are returned. */
  objects?: readonly (number | bigint)[] | BigInt64Array;
  /** Objects of groups, by number or name. */
  groups?: readonly (number | string)[];
  chunks?: readonly (readonly number[])[];
  /** Filter by attributes, such as `vertex.radius > 2 and kind = 'axon'`. */
  where?: string;
  /** Value of the attribute by which the level is chunked. */
  chunkedBy?: unknown;
  /** Attributes to read, such as `fa` or `object.length`; all unless given. */
  select?: readonly string[];
  /** Level to read; 0, the finest, unless given. At most one of `level`, `scale`, `vertices` and `budget`. */
  level?: number;
  /** Read the coarsest level whose bins are at most this many times as large. */
  scale?: number;
  /** Read the finest level with at most this many vertices. */
  vertices?: number;
  /** Return at most this many vertices, as fine as possible. */
  budget?: number;
  /** Position around which a budget is spent first. */
  focus?: readonly number[];
  /** Return what an additive level itself stores, without the levels that complete it. */
  ownLevel?: boolean;
  /** Return the vertices that the selection is linked to, this number of levels away. */
  drill?: number;
  /** Additional geometry of a composite store. */
  geometry?: string;
  /** Return the object of each vertex; true unless given. */
  owners?: boolean;
  /** Return the address of each vertex. Requires level 0. */
  rowIds?: boolean;
  /** Return the corners of faces counter-clockwise, seen from outside. */
  counterClockwise?: boolean;
  /** Maximum number of vertices, paths or links. */
  limit?: number;
  /** Skip damaged parts and list them in `Result.skipped` instead of failing. */
  keepGoing?: boolean;
}

export interface CallOptions {
  /** Cancels the call: the promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
}

export interface BatchOptions extends CallOptions {
  /** Maximum number of vertices, or links, in a batch; 65,536 unless given. Paths are not cut. */
  batchRows?: number;
  /** Approximate size of a batch in bytes; 16 MiB unless given. */
  batchBytes?: number;
}

/** An attribute of a result. */
export interface Column {
  name: string;
  /** The type as the store has it: `float32`, `int64`, `text`, … */
  dtype: string;
  /** Numbers in a row. */
  width: number;
  /** Row by row. Of text, a code for each row: `words[code]`, and 4294967295 for a row without a value. */
  values: Numbers;
  words?: string[];
  /** 1 for each row without a value. */
  nulls?: Uint8Array;
}

/** The result of a query, as columns. */
export interface Result {
  /** The level; the finest one if there are several. */
  level: number;
  /** Level and number of vertices, if the rows come from several levels. */
  levels: [level: number, vertices: number][];
  /** Number of vertices in earlier batches. */
  firstRow: number;
  axes: string[];
  /** Number of vertices. */
  length: number;
  /** Coordinates, vertex by vertex: `axes.length` numbers each. */
  positions: Numbers;
  /** Paths: part p is the rows `partOffsets[p]` to `partOffsets[p + 1]`. Absent for other geometry. */
  partOffsets?: Uint32Array;
  /** The object of each part. */
  partObjects?: BigInt64Array;
  /** The object of each vertex, for geometry other than paths; -1 for none, -2 for several. */
  objectIds?: BigInt64Array;
  rowIds?: BigUint64Array;
  /** Edges or faces as rows of `positions`: `linkWidth` each; (child, parent) for skeletons. */
  links?: Uint32Array;
  linkWidth: number;
  /** Objects of the result, one for each row of `object`. */
  objects: BigInt64Array;
  vertex: Column[];
  fragment: Column[];
  link: Column[];
  object: Column[];
  /** Distances of the nearest vertices, paths or links. */
  distances?: Float64Array;
  /** Members of the groups that the query names. */
  groups: { id: number; members: BigInt64Array }[];
  skipped: { key: string; reason: string }[];
  notes: string[];
}

export interface Counts {
  level: number;
  vertices: number;
  parts: number | null;
  objects: number | null;
  links: number | null;
  levels: [level: number, vertices: number][];
  skipped: { key: string; reason: string }[];
  notes: string[];
}

export interface Operator {
  depth: number;
  name: string;
  details: string;
  level: number;
  requests: number;
  roundTrips: number;
  bytes: number | null;
}

export interface Plan {
  /** Number of requests in the first round trip. */
  requests: number;
  /** Number of bytes that they read, if known. */
  bytes: number | null;
  atMost: number | null;
  levels: [level: number, vertices: number][];
  operators: Operator[];
  notes: string[];
}

export interface Axis {
  name: string;
  /** `space`, `time`, … */
  type: string | null;
  unit: string | null;
}

export interface AttributeInfo {
  family: Family;
  name: string;
  /** Type of a value, or `text`. */
  dtype: string;
  channels: number | null;
  channelNames: string[];
  unit: string | null;
  description: string | null;
  /** Number of distinct words of a text, if the metadata list them. */
  categories: number | null;
}

/** What the metadata of a level declare. Counts are `null` where they declare none. */
export interface LevelInfo {
  level: number;
  vertices: number | null;
  objects: number | null;
  /** Extent of the bins of this level along each axis. */
  binShape: number[];
  chunkShape: number[];
  /** True if each point is stored on one level only. */
  isAdditive: boolean;
}

/** What a store declares; reading it takes no listing. */
export interface StoreInfo {
  address: string;
  generation: string;
  /** `point_cloud`, `line`, `polyline`, `streamline`, `skeleton`, `graph`, `mesh`. */
  kinds: string[];
  axes: Axis[];
  bounds: [lower: number[], upper: number[]] | null;
  chunkShape: number[];
  /** Order of the corners of faces, if there are any. */
  winding: string | null;
  crs: unknown;
  name: string | null;
  /** Finest first. */
  levels: LevelInfo[];
  capabilities: string[];
  isSealed: boolean;
  notes: string[];
}

export interface GroupInfo {
  id: number;
  name: string | null;
  size: number;
}

/** The range of the values of an attribute. */
export interface AttributeRange {
  min: number | null;
  max: number | null;
  nulls: number;
}

/** What a store has read since it was opened. */
export interface Stats {
  requests: number;
  /** Bytes of the answers. */
  bytes: number;
  lists: number;
}

export interface Store extends AsyncDisposable {
  readonly info: StoreInfo;
  /** Counters as of the last answer. */
  readonly stats: Stats;
  query(query?: Query, options?: CallOptions): Promise<Result>;
  count(query?: Query, options?: CallOptions): Promise<Counts>;
  explain(query?: Query, options?: CallOptions): Promise<Plan>;
  /** Leaving the loop stops the query. */
  batches(query?: Query, options?: BatchOptions): AsyncIterableIterator<Result>;
  /** Attributes of a level with their types. Stores on servers without listings tell those that their metadata name. */
  attributes(level?: number, options?: CallOptions): Promise<AttributeInfo[]>;
  /** Groups of objects with their names and sizes. */
  groups(level?: number, options?: CallOptions): Promise<GroupInfo[]>;
  /**
   * The range of an attribute, such as `vertex.fa`. Reads the values of the level: the coarsest unless
   * one is given.
   */
  range(attribute: string, level?: number, options?: CallOptions): Promise<AttributeRange>;
  /** Frees the memory of the store. Calls that are under way fail. */
  close(): Promise<void>;
}

export type ErrorKind =
  | "damaged" | "unsupported" | "over budget" | "unavailable" | "not found" | "conflict"
  | "invalid input" | "interrupted"
  /** A defect of the engine. The store must be opened again. */
  | "panic";

/** Why a call failed. `message` is one sentence that names the object and the causes. */
export interface ZvfError extends Error {
  readonly name: "ZvfError";
  readonly kind: ErrorKind;
  /** The object of the store that the error is about. */
  readonly key?: string;
}

export declare function open(source: Source, options?: OpenOptions): Promise<Store>;
/** Answers the calls of `open` with the option `worker`. A worker's script calls this once. */
export declare function serve(): void;
