/** What the page asks of a store: the vocabulary of queries of the engine, and its results. */
export interface Attribute {
  scope: "vertex" | "fragment" | "link" | "object" | "group";
  name: string;
  type: string;
  channels?: number | null;
  unit?: string | null;
}

export interface Level {
  level: number;
  vertices: number | null;
  objects: number | null;
}

export interface Description {
  name: string;
  geometry: string;
  axes: string[];
  units: (string | undefined)[];
  low: number[];
  high: number[];
  chunkShape: number[];
  levels: Level[];
  attributes: Attribute[];
  groups: { id: number; name?: string; size?: number }[];
}

export interface Query {
  bbox?: [number[], number[]];
  sphere?: [number[], number];
  mode?: "touch" | "within" | "clip";
  objects?: number[];
  groups?: number[];
  where?: string;
  level?: number;
  budget?: number;
  limit?: number;
  select?: string[];
}

export type Column = ArrayLike<number | bigint | string | boolean | null>;

export interface Result {
  /** The level, the finest if there are several. */
  level: number;
  positions: Float32Array | Float64Array | ArrayLike<number>;
  /** Numbers of a position. */
  dimensions: number;
  objects: ArrayLike<number | bigint>;
  partOffsets?: ArrayLike<number | bigint> | undefined;
  partObjects?: ArrayLike<number | bigint> | undefined;
  objectIds?: ArrayLike<number | bigint> | undefined;
  links?: ArrayLike<number | bigint> | undefined;
  /** Ends of a link. */
  ends: number;
  vertex: Record<string, Column>;
  object: Record<string, Column>;
}

export interface Counts {
  vertices: number;
  parts?: number | null;
  objects?: number | null;
  links?: number | null;
}

/** Members of groups, by number. */
export type Members = Record<string, ArrayLike<number | bigint>>;

export interface Traffic {
  requests: number;
  bytes: number;
}

export interface Store {
  describe(): Promise<Description>;
  query(query: Query, signal: AbortSignal): Promise<Result>;
  count(query: Query, signal: AbortSignal): Promise<Counts>;
  members(groups: number[], signal: AbortSignal): Promise<Members>;
  traffic(): Traffic;
}
