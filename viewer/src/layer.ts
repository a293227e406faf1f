import type { Camera } from "./camera.ts";
import { Geometry, NO_VALUE, type Shape } from "./geometry.ts";
import { add, center, corners, hash, intersection, length, scale, subtract, transform, type Box, type Vec3 } from "./math.ts";
import { histogram } from "./histogram.ts";
import { MAP_NAMES } from "./palette.ts";
import type { Drawing, Look, TileGrid } from "./renderer.ts";
import { column, isMesh, isPaths, question } from "./selection.ts";
import type { LayerState } from "./state.ts";
import type { Column, Counts, Description, Members, Query, Result, Store } from "./store.ts";

const MOST_TILES = 512;
/** Tiles are joined to this number while they have fewer vertices than are worth a query. */
const FEW_TILES = 64;
const LEAST_ROWS = 20_000;
/** Vertices that a first picture may have, if the store has no coarser level. */
const FIRST = 1_500_000;
/** Vertices per pixel beyond which a finer level shows nothing more. */
const DENSITY = 0.5;
/** Times the budget that tiles may hold, because estimates may be too low and tiles that left the view are kept. */
const MOST_HELD = 1.5;

interface Tile {
  level: number;
  geometry?: Geometry;
  loading?: AbortController;
  usedAt: number;
}

/** A store in the scene: its coarsest level whole, and finer tiles where the camera needs them. */
export class Layer {
  base: Geometry | undefined;
  counts: Counts | undefined;
  /** What selects that which is shown; undefined while that is being asked. */
  query: Query | undefined;
  error: unknown;
  isBusy = false;
  /** Members of all groups, once they have been read. */
  members: Members | undefined;
  /** Labels of the categories of the current colours, if any. */
  categories: string[] = [];
  private readonly grid: TileGrid;
  private readonly tiles = new Map<number, Tile>();
  /** The share of the vertices of the base in each tile. */
  private weights = new Map<number, number>();
  private asked = new AbortController();
  /** Place of the level of the base among all levels. */
  private baseLevel = 0;
  /** The question that tiles repeat; undefined while none may be read. */
  private tileQuery: Query | undefined;

  constructor(
    readonly store: Store,
    readonly description: Description,
    readonly state: LayerState,
    private readonly gl: WebGL2RenderingContext,
    private readonly origin: Vec3,
    private readonly changed: () => void,
  ) {
    const box = this.box();
    let size = description.chunkShape.slice(0, 3).map((value) => value || 1) as Vec3;
    while (size.length < 3) size.push(1);
    const low = () => box.low.map((value, axis) => Math.floor(value / size[axis]!) * size[axis]!) as Vec3;
    const count = () => box.high.map((value, axis) => Math.max(1, Math.floor((value - low()[axis]!) / size[axis]!) + 1)) as Vec3;
    const rows = description.levels[0]?.vertices ?? Infinity;
    const isTooFine = (tiles: number) => tiles > MOST_TILES || (tiles > FEW_TILES && rows / tiles < LEAST_ROWS);
    while (isTooFine(count().reduce((a, b) => a * b))) size = scale(size, 2);
    const counted = count();
    this.grid = {
      low: subtract(low(), origin), size, count: counted,
      slots: new Uint8Array(counted[0] * counted[1] * counted[2]), isStale: true,
    };
    if (!state.color) state.color = this.colors()[0]!;
  }

  box(): Box {
    const pick = (values: number[]): Vec3 => [values[0] ?? 0, values[1] ?? 0, values[2] ?? 0];
    return { low: pick(this.description.low), high: pick(this.description.high) };
  }

  get shape(): Shape | undefined {
    return this.base?.shape;
  }

  /** What can colour this layer, the best first. */
  colors(): string[] {
    const { attributes, groups, geometry, levels } = this.description;
    const numbers = attributes.filter((a) => (a.channels ?? 1) === 1 && (a.scope === "vertex" || a.scope === "object"));
    const names = numbers.map((a) => `${a.scope}.${a.name}`);
    // Many stores do not declare how many objects they have.
    const hasObjects = (levels[0]?.objects ?? (/line|skeleton|graph/.test(geometry) ? Infinity : 0)) > 1;
    return [
      ...(/line/.test(geometry) ? ["orientation"] : []),
      ...(/skeleton|graph/.test(geometry) && hasObjects ? ["object"] : []),
      ...names.filter((name) => this.isText(name)), ...names.filter((name) => !this.isText(name)),
      ...(groups.length ? ["group"] : []),
      ...(hasObjects && !/skeleton|graph/.test(geometry) ? ["object"] : []),
      "plain",
    ];
  }

  isText(name: string): boolean {
    return this.description.attributes.find((a) => `${a.scope}.${a.name}` === name)?.type.startsWith("text") ?? false;
  }

  /** Asks the store again, after the question changed. */
  async ask(): Promise<void> {
    this.asked.abort();
    const asked = (this.asked = new AbortController());
    this.dropTiles();
    this.tileQuery = undefined;
    this.isBusy = true;
    this.error = undefined;
    this.counts = undefined;
    this.query = undefined;
    this.changed();
    const { signal } = asked;
    try {
      const query = await question(this, signal);
      if (signal.aborted) return;
      const levels = this.description.levels;
      const coarsest = levels[levels.length - 1]!;
      const isTooLarge = (coarsest.vertices ?? 0) > FIRST;
      const isCut = query.bbox && !isPaths(this.description);
      // Coarser levels lack some of the paths, and may have none that a question selects.
      const isAsked = isPaths(this.description) && Object.keys(query).length > 0;
      const first: Query = { ...query, ...(isAsked ? { budget: FIRST } : { level: coarsest.level }) };
      if (isCut) first.mode = "clip";
      if (isTooLarge && !isAsked) first.limit = isPaths(this.description) ? 20_000 : FIRST;
      const result = await this.store.query(first, signal);
      if (signal.aborted) return;
      this.base?.free();
      this.base = new Geometry(this.gl, result, isMesh(this.description), this.origin);
      this.baseLevel = Math.max(levels.findIndex(({ level }) => level === result.level), 0);
      this.weigh();
      this.recolor();
      this.changed();
      this.counts = await this.count(query, signal);
      if (signal.aborted) return;
      this.query = query;
      this.tileQuery = await this.tileQuestion(query, signal);
    } catch (error) {
      if (!signal.aborted) this.error = error;
    } finally {
      if (this.asked === asked) {
        this.isBusy = false;
        this.changed();
      }
    }
  }

  /** What the store declares, if nothing is asked; else what the engine counts. */
  private async count(query: Query, signal: AbortSignal): Promise<Counts> {
    const { vertices, objects } = this.description.levels[0]!;
    return Object.keys(query).length || vertices === null ? this.store.count(query, signal) : { vertices, objects };
  }

  /** Reads the members of all groups once, when something needs them. */
  readMembers(): Promise<void> {
    return (this.reading ??= (async () => {
      try {
        this.members = await this.store.members(this.description.groups.map((group) => group.id), new AbortController().signal);
      } catch (error) {
        this.members = {};
        this.error = error;
      }
      this.recolor();
    })());
  }
  private reading: Promise<void> | undefined;

  /** Tiles are boxes, so a region becomes the ids of the paths that touch it, or a smaller box. */
  private async tileQuestion(query: Query, signal: AbortSignal): Promise<Query | undefined> {
    if (this.description.levels.length < 2) return undefined;
    if (isPaths(this.description) && (query.bbox || query.sphere)) {
      const { objects } = await this.store.query({ ...query, level: 0, select: [] }, signal);
      const { bbox: _bbox, sphere: _sphere, groups: _groups, ...rest } = query;
      return { ...rest, objects: Array.from(objects, Number) };
    }
    return query.sphere ? undefined : query;
  }

  /** Reads finer tiles where the camera needs them, and returns the vertices that it draws. */
  refine(camera: Camera, size: [number, number], budget: number, isInSlab: (box: Box) => boolean): number {
    if (!this.base || !this.tileQuery || !this.state.isVisible) return this.base && this.state.isVisible ? this.base.vertices : 0;
    const levels = this.description.levels;
    const ratio = this.base.vertices / Math.max(levels[this.baseLevel]!.vertices ?? 1, 1);
    const most = this.counts?.vertices ?? levels[0]!.vertices ?? 0;
    const matrix = camera.matrix(size[0] / size[1]);
    const wanted = [...this.weights]
      .map(([at, weight]) => ({ at, weight, area: this.area(at, matrix, size) }))
      .filter(({ at, area }) => area > 0 && isInSlab(this.tileBox(at)))
      .sort((a, b) => b.area - a.area);
    const now = performance.now();
    /** The level that each tile should have. */
    const keep = new Map<number, number>();
    // Coarse levels may store once what results repeat, so the count of the finest level bounds all. Levels are chosen by
    // these estimates alone, so that the picture does not depend on the order in which tiles arrive.
    const cost = (level: number, weight: number) => Math.min(level ? (levels[level]!.vertices ?? Infinity) * ratio : Infinity, most) * weight;
    let used = this.base.vertices;
    let loading = [...this.tiles.values()].filter((tile) => tile.loading).length;
    const isFull = this.held() > budget * MOST_HELD;
    for (const { at, weight, area } of wanted) {
      let level = levels.findIndex((_, l) => cost(l, weight) <= Math.max(area * DENSITY, 3000) && used + cost(l, weight) <= budget);
      if (level < 0) level = this.baseLevel;
      const tile = this.tiles.get(at);
      if (level >= this.baseLevel && !tile) continue;
      keep.set(at, level);
      used += cost(level, weight);
      if (tile && tile.level <= level) tile.usedAt = now;
      else if (loading < 4 && !isFull) {
        tile?.loading?.abort();
        loading++;
        void this.load(at, level, tile?.geometry ? tile : undefined);
      }
    }
    for (const [at, tile] of this.tiles) {
      if (tile.loading && !keep.has(at)) {
        tile.loading.abort();
        if (!tile.geometry) this.tiles.delete(at);
      }
    }
    let held = this.held();
    for (const [at, tile] of [...this.tiles].sort((a, b) => a[1].usedAt - b[1].usedAt)) {
      if (held <= budget * MOST_HELD) break;
      // Tiles that are finer than needed go as well, and are then read at their level.
      if (!tile.geometry || tile.level >= (keep.get(at) ?? Infinity)) continue;
      held -= tile.geometry.vertices;
      this.drop(at, tile);
    }
    return held;
  }

  /** Vertices in the memory of the GPU. */
  private held(): number {
    return [...this.tiles.values()].reduce((sum, tile) => sum + (tile.geometry?.vertices ?? 0), this.base?.vertices ?? 0);
  }

  private async load(at: number, level: number, finerThan: Tile | undefined): Promise<void> {
    const loading = new AbortController();
    const tile: Tile = { level, loading, usedAt: performance.now() };
    if (finerThan?.geometry) tile.geometry = finerThan.geometry;
    this.tiles.set(at, tile);
    try {
      const { bbox, ...rest } = this.tileQuery!;
      // The upper border belongs to the next chunk, which need not be read.
      const { low, high } = this.tileBox(at);
      const own: Box = { low, high: subtract(high, scale(this.grid.size, 1e-9)) };
      const asked = bbox ? intersection(own, { low: bbox[0] as Vec3, high: bbox[1] as Vec3 }) : own;
      if (asked) {
        // Whole faces at the border of a tile give its vertices their normals.
        const mode = bbox || rest.where || !isMesh(this.description) ? "clip" : "touch";
        const result = await this.store.query({ ...rest, level, mode, bbox: this.worldBox(asked) }, loading.signal);
        if (loading.signal.aborted || this.tiles.get(at) !== tile) return;
        const geometry = new Geometry(this.gl, result, isMesh(this.description), this.origin);
        geometry.color(this.values(result));
        finerThan?.geometry?.free();
        tile.geometry = geometry;
      }
      this.grid.slots[at] = asked ? 1 : 0;
      this.grid.isStale = true;
    } catch (error) {
      if (!loading.signal.aborted) this.error = error;
    } finally {
      delete tile.loading;
      this.changed();
    }
  }

  private drop(at: number, tile: Tile): void {
    tile.loading?.abort();
    tile.geometry?.free();
    this.tiles.delete(at);
    this.grid.slots[at] = 0;
    this.grid.isStale = true;
  }

  private dropTiles(): void {
    for (const [at, tile] of [...this.tiles]) this.drop(at, tile);
  }

  free(): void {
    this.asked.abort();
    this.dropTiles();
    this.base?.free();
  }

  get isLoading(): boolean {
    return this.isBusy || (!!this.reading && !this.members) || [...this.tiles.values()].some((tile) => tile.loading);
  }

  drawings(look: Look): Drawing[] {
    if (!this.base || !this.state.isVisible) return [];
    const all: Drawing[] = [{ geometry: this.base, slot: 0, grid: this.grid, look }];
    for (const [at, tile] of this.tiles) {
      // Each tile is drawn in its own box only.
      if (tile.geometry) all.push({ geometry: tile.geometry, slot: 1, grid: this.cell(at), look });
    }
    return all;
  }

  /** The grid of one tile: all else is outside. */
  private cell(at: number): TileGrid {
    const box = this.tileBox(at);
    const own = this.cells.get(at) ?? {
      low: subtract(subtract(box.low, this.origin), this.grid.size), size: this.grid.size, count: [3, 3, 3] as Vec3,
      slots: new Uint8Array(27), isStale: true,
    };
    own.slots[13] = 1;
    this.cells.set(at, own);
    return own;
  }
  private readonly cells = new Map<number, TileGrid>();

  private tileBox(at: number): Box {
    const [nx, ny] = this.grid.count;
    const cell: Vec3 = [at % nx, Math.floor(at / nx) % ny, Math.floor(at / nx / ny)];
    const low = add(this.grid.low, cell.map((value, axis) => value * this.grid.size[axis]!) as Vec3);
    return { low: add(low, this.origin), high: add(add(low, this.origin), this.grid.size) };
  }

  private worldBox(box: Box): [number[], number[]] {
    const rest = this.description.low.slice(3);
    return [
      [...box.low, ...rest].slice(0, this.description.axes.length),
      [...box.high, ...this.description.high.slice(3)].slice(0, this.description.axes.length),
    ];
  }

  /** The pixels of the screen that a tile covers. */
  private area(at: number, matrix: Float32Array, [width, height]: [number, number]): number {
    const box = this.tileBox(at);
    const seen = corners({ low: subtract(box.low, this.origin), high: subtract(box.high, this.origin) }).map((p) => transform(matrix, p));
    if (seen.every((p) => p[3] <= 0)) return 0;
    if (seen.some((p) => p[3] <= 0)) return width * height;
    const xs = seen.map((p) => Math.min(Math.max(p[0] / p[3], -1), 1));
    const ys = seen.map((p) => Math.min(Math.max(p[1] / p[3], -1), 1));
    return ((Math.max(...xs) - Math.min(...xs)) * (Math.max(...ys) - Math.min(...ys)) * width * height) / 4;
  }

  private weigh(): void {
    const { positions, dimensions } = this.base!.result;
    const rows = positions.length / dimensions;
    const counts = new Map<number, number>();
    const { low, size, count } = this.grid;
    for (let row = 0; row < rows; row++) {
      let at = 0;
      for (let axis = 2; axis >= 0; axis--) {
        const value = axis < dimensions ? positions[row * dimensions + axis]! : 0;
        const cell = Math.floor((value - this.origin[axis]! - low[axis]!) / size[axis]!);
        at = at * count[axis]! + Math.min(Math.max(cell, 0), count[axis]! - 1);
      }
      counts.set(at, (counts.get(at) ?? 0) + 1);
    }
    this.weights = new Map([...counts].map(([at, n]) => [at, n / rows]));
  }

  /** Computes the values of all rows again, after the colours changed. */
  recolor(): void {
    if (!this.base) return;
    if (this.state.color === "group" && !this.members) void this.readMembers();
    this.categories = [];
    const values = this.values(this.base.result);
    this.base.color(values);
    for (const tile of this.tiles.values()) if (tile.geometry) tile.geometry.color(this.values(tile.geometry.result));
    this.spread = spread(values);
    this.changed();
  }

  /** The values of the base that 98 % lie between. */
  spread: [number, number] = [0, 1];

  coloring(): Look["coloring"] {
    const { color } = this.state;
    if (color === "orientation") return 1;
    if (color === "plain") return 3;
    return color === "object" || color === "group" || this.isText(color) ? 2 : 0;
  }

  look(pixelWidth: number): Look {
    const { state } = this;
    return {
      coloring: this.coloring(),
      map: MAP_NAMES.includes(state.map) ? state.map : "viridis",
      range: state.range ?? this.spread,
      plain: [0.82, 0.8, 0.76],
      width: pixelWidth * state.width,
      share: this.shape === "mesh" ? 1 : state.share,
      selected: state.object === undefined ? undefined : Number(BigInt.asUintN(32, BigInt(Math.trunc(state.object)))),
    };
  }

  /** The column of a result that `name` means, with a value for each vertex. */
  static column(result: Result, name: string): ((row: number) => unknown) | undefined {
    const at = name.indexOf(".");
    const [scope, attribute] = [name.slice(0, at), name.slice(at + 1)];
    if (scope === "vertex") {
      const own = result.vertex[attribute];
      return own && ((row) => own[row]);
    }
    const own = result.object[attribute];
    return own && byObject(result, own);
  }

  private values(result: Result): Float32Array {
    const rows = result.positions.length / result.dimensions;
    const { color } = this.state;
    const out = new Float32Array(rows).fill(NO_VALUE);
    if (color === "orientation" || color === "plain") return out;
    let value: ((row: number) => unknown) | undefined;
    if (color === "object") {
      value = byObject(result, Array.from(result.objects, (id) => hash(Number(BigInt.asUintN(32, BigInt(id)))) % 250));
    } else if (color === "group") {
      const of = new Map<number, number>();
      this.description.groups.forEach((group, at) => {
        const members = this.members?.[group.id];
        if (members) for (let k = 0; k < members.length; k++) of.set(Number(members[k]), at);
      });
      this.categories = this.description.groups.map((group) => group.name ?? `group ${group.id}`);
      value = byObject(result, Array.from(result.objects, (id) => of.get(Number(id)) ?? NO_VALUE));
    } else {
      value = Layer.column(result, color);
      if (this.isText(color) && value) {
        const text = value;
        value = (row) => {
          const name = text(row);
          if (name === null || name === undefined) return NO_VALUE;
          const at = this.categories.indexOf(String(name));
          return at >= 0 || this.categories.length >= 256 ? at : this.categories.push(String(name)) - 1;
        };
      }
    }
    if (value) {
      for (let row = 0; row < rows; row++) {
        const number = Number(value(row) ?? NaN);
        out[row] = Number.isFinite(number) ? number : NO_VALUE;
      }
    }
    return out;
  }

  /** Returns the number of objects in view of the share, of those that the first picture has. */
  shared(): number {
    const share = this.state.share * 2 ** 32;
    return Array.from(this.base?.result.objects ?? []).filter((id) => hash(Number(BigInt.asUintN(32, BigInt(id)))) < share).length;
  }

  /** The histogram of an attribute, of the first picture that had no question. */
  histogram(name: string): ReturnType<typeof histogram> {
    if (!this.histograms.has(name) && this.base) {
      const value = Layer.column(this.base.result, name);
      const rows = this.base.result.positions.length / this.base.result.dimensions;
      const values = Float32Array.from({ length: value ? rows : 0 }, (_, row) => {
        const number = Number(value!(row) ?? NaN);
        return Number.isFinite(number) ? number : NO_VALUE;
      });
      this.histograms.set(name, histogram(values));
    }
    return this.histograms.get(name);
  }
  private readonly histograms = new Map<string, ReturnType<typeof histogram>>();

  /** The size of lines and points that suits the scene, in world units. */
  thickness(): number {
    const box = this.box();
    const size = length(subtract(box.high, box.low));
    if (this.shape === "points") return size * 0.0022;
    return size * (isPaths(this.description) ? 0.0013 : 0.0011);
  }

  middle(): Vec3 {
    return center(this.box());
  }

  /** How the filter line names each column. */
  columns(): string[] {
    return this.description.attributes
      .filter((a) => a.scope !== "link" && a.scope !== "fragment")
      .map((a) => column(a.scope, a.name));
  }
}

function byObject(result: Result, column: Column): (row: number) => unknown {
  const rows = result.positions.length / result.dimensions;
  const place = new Map<number, number>();
  for (let at = 0; at < result.objects.length; at++) place.set(Number(result.objects[at]), at);
  const of = new Int32Array(rows).fill(-1);
  if (result.partOffsets && result.partObjects) {
    for (let part = 0; part < result.partObjects.length; part++) {
      of.fill(place.get(Number(result.partObjects[part])) ?? -1, Number(result.partOffsets[part]), Number(result.partOffsets[part + 1]));
    }
  } else if (result.objectIds) {
    for (let row = 0; row < rows; row++) of[row] = place.get(Number(result.objectIds[row])) ?? -1;
  }
  return (row) => (of[row]! < 0 ? null : column[of[row]!]);
}

function spread(values: Float32Array): [number, number] {
  const step = Math.max(1, Math.floor(values.length / 20_000));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += step) if (values[at]! > NO_VALUE) sample.push(values[at]!);
  if (!sample.length) return [0, 1];
  sample.sort((a, b) => a - b);
  return [sample[Math.floor(sample.length * 0.01)]!, sample[Math.ceil((sample.length - 1) * 0.99)]!];
}
