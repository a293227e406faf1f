import type { Vec3 } from "./math.ts";

/** Everything that a link restores. */
export interface State {
  camera?: { target: Vec3; distance: number; yaw: number; pitch: number };
  theme?: "dark" | "light";
  axes: boolean;
  slab?: { axis: 0 | 1 | 2; at: number; width: number };
  volume?: VolumeState;
  layers: LayerState[];
}

export interface VolumeState {
  isVisible: boolean;
  /** The slices that are drawn, and where they cut the axes. */
  shown: [boolean, boolean, boolean];
  at?: Vec3;
  /** Values that are black and white. */
  window?: [number, number];
}

export const newVolumeState = (): VolumeState => ({ isVisible: true, shown: [true, true, true] });

export interface LayerState {
  isVisible: boolean;
  /** `orientation`, `object`, `group`, `plain`, or an attribute such as `vertex.fa`. */
  color: string;
  map: string;
  range?: [number, number];
  width: number;
  share: number;
  where: string;
  /** Ranges of attributes, which narrow the filter. */
  ranges: Record<string, [number, number]>;
  groups: number[];
  /** One region for layers other than paths. */
  regions: Region[];
  object?: number;
  isIsolated: boolean;
}

/** What a path does to a region for it to be drawn. */
export const ROLES = ["passes", "avoids", "ends in"] as const;
export type Region = { role: (typeof ROLES)[number]; center: Vec3 } & (
  | { shape: "box"; size: Vec3 }
  | { shape: "sphere"; radius: number });
const MOST_REGIONS = 16;

export function newLayerState(): LayerState {
  return { isVisible: true, color: "", map: "viridis", width: 1, share: 1, where: "", ranges: {}, groups: [], regions: [], isIsolated: false };
}

export const newState = (): State => ({ axes: true, layers: [] });

export function toFragment(state: State): string {
  const short = (_key: string, value: unknown) => (typeof value === "number" ? Number(value.toPrecision(6)) : value);
  return `#${encodeURIComponent(JSON.stringify(state, short))}`;
}

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isVec3 = (value: unknown): value is Vec3 => Array.isArray(value) && value.length === 3 && value.every(isNumber);
const isRange = (value: unknown): value is [number, number] =>
  Array.isArray(value) && value.length === 2 && value.every(isNumber);
type Bag = Record<string, unknown>;
const bag = (value: unknown): Bag => (typeof value === "object" && value !== null ? (value as Bag) : {});

/** Reads a fragment, whoever wrote it: what is not of the right type is left out. */
export function fromFragment(fragment: string): State {
  const state = newState();
  let read: Bag;
  try {
    read = bag(JSON.parse(decodeURIComponent(fragment.slice(1))));
  } catch {
    return state;
  }
  const camera = bag(read.camera);
  if (isVec3(camera.target) && isNumber(camera.distance) && camera.distance > 0 && isNumber(camera.yaw) && isNumber(camera.pitch)) {
    state.camera = { target: camera.target, distance: camera.distance, yaw: camera.yaw, pitch: camera.pitch };
  }
  if (read.theme === "dark" || read.theme === "light") state.theme = read.theme;
  if (read.axes === false) state.axes = false;
  const slab = bag(read.slab);
  if ((slab.axis === 0 || slab.axis === 1 || slab.axis === 2) && isNumber(slab.at) && isNumber(slab.width)) {
    state.slab = { axis: slab.axis, at: slab.at, width: slab.width };
  }
  if (read.volume !== undefined) state.volume = volume(bag(read.volume));
  if (Array.isArray(read.layers)) state.layers = read.layers.slice(0, 16).map(layer);
  return state;
}

function volume(read: Bag): VolumeState {
  const made = newVolumeState();
  if (read.isVisible === false) made.isVisible = false;
  if (Array.isArray(read.shown)) made.shown = [0, 1, 2].map((axis) => (read.shown as unknown[])[axis] !== false) as VolumeState["shown"];
  if (isVec3(read.at)) made.at = read.at;
  if (isRange(read.window) && read.window[0] < read.window[1]) made.window = read.window;
  return made;
}

function layer(value: unknown): LayerState {
  const read = bag(value);
  const made = newLayerState();
  if (read.isVisible === false) made.isVisible = false;
  if (read.isIsolated === true) made.isIsolated = true;
  for (const name of ["color", "map", "where"] as const) if (typeof read[name] === "string") made[name] = read[name];
  if (isNumber(read.width)) made.width = Math.min(Math.max(read.width, 0.1), 10);
  if (isNumber(read.share)) made.share = Math.min(Math.max(read.share, 0), 1);
  if (isNumber(read.object)) made.object = read.object;
  if (isRange(read.range)) made.range = read.range;
  if (Array.isArray(read.groups)) made.groups = read.groups.filter(isNumber).slice(0, 4096);
  for (const [name, range] of Object.entries(bag(read.ranges))) if (isRange(range)) made.ranges[name] = range;
  for (const each of Array.isArray(read.regions) ? read.regions.slice(0, MOST_REGIONS) : []) {
    const region = bag(each);
    const role = ROLES.find((name) => name === region.role) ?? "passes";
    if (!isVec3(region.center)) continue;
    if (region.shape === "box" && isVec3(region.size)) made.regions.push({ role, shape: "box", center: region.center, size: region.size });
    if (region.shape === "sphere" && isNumber(region.radius)) {
      made.regions.push({ role, shape: "sphere", center: region.center, radius: region.radius });
    }
  }
  return made;
}
