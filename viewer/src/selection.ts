import type { LayerState, Region } from "./state.ts";
import type { Description, Query, Result, Store } from "./store.ts";

/** How a column is written in a predicate. */
export function column(scope: string, name: string): string {
  const isPlain = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) && !/^(and|or|not|in|is|null|true|false|between)$/i.test(name);
  return `${scope}.${isPlain ? name : `"${name.replaceAll('"', '""')}"`}`;
}

export const isPaths = (description: Description): boolean => /line/.test(description.geometry);
export const isMesh = (description: Description): boolean => /mesh/.test(description.geometry);

/** What the panel selects, without regions. */
function selected(state: LayerState): Query {
  const query: Query = {};
  const tests = Object.entries(state.ranges).map(([name, [low, high]]) => {
    const at = name.indexOf(".");
    return `${column(name.slice(0, at), name.slice(at + 1))} between ${low} and ${high}`;
  });
  if (state.where.trim()) tests.unshift(tests.length ? `(${state.where.trim()})` : state.where.trim());
  if (tests.length) query.where = tests.join(" and ");
  if (state.isIsolated && state.object !== undefined) query.objects = [state.object];
  else if (state.groups.length) query.groups = state.groups;
  return query;
}

function within(region: Region): Query {
  if (region.shape === "sphere") return { sphere: [region.center, region.radius] };
  const { center, size } = region;
  return { bbox: [center.map((at, axis) => at - size[axis]! / 2), center.map((at, axis) => at + size[axis]! / 2)] };
}

function holds(region: Region, { positions, dimensions }: Result, row: number): boolean {
  const away = region.center.slice(0, dimensions).map((at, axis) => Math.abs(positions[row * dimensions + axis]! - at));
  return region.shape === "sphere" ? Math.hypot(...away) <= region.radius : away.every((by, axis) => by <= region.size[axis]! / 2);
}

/** The query that a layer asks: what the panel selects. One region is part of the query of the engine; several become the ids
 * of the paths that do what each of them says. */
export async function question({ state, store }: Asked, signal: AbortSignal): Promise<Query> {
  const query = selected(state);
  const [first, ...more] = state.regions;
  if (!first) return query;
  if (first.role === "passes" && !more.length) return { ...query, ...within(first) };
  const whole = { ...query, level: 0, select: [] };
  const read = async (region: Region): Promise<Set<number>> => {
    const found = await store.query({ ...whole, ...within(region) }, signal);
    const { partOffsets, partObjects } = found;
    if (region.role !== "ends in" || !partOffsets || !partObjects) return new Set(Array.from(found.objects, Number));
    const ends = (part: number) => [Number(partOffsets[part]), Number(partOffsets[part + 1]) - 1];
    const parts = Array.from(partObjects, Number);
    return new Set(parts.filter((_, part) => ends(part).some((row) => holds(region, found, row))));
  };
  const sets = await Promise.all(state.regions.map(read));
  const wanted = sets.filter((_, at) => state.regions[at]!.role !== "avoids");
  const avoided = sets.filter((_, at) => state.regions[at]!.role === "avoids");
  const all = wanted.shift() ?? new Set(Array.from((await store.query(whole, signal)).objects, Number));
  const { groups: _groups, ...rest } = query;
  return { ...rest, objects: [...all].filter((id) => wanted.every((set) => set.has(id)) && !avoided.some((set) => set.has(id))) };
}

/** A layer, as far as its question needs it. */
interface Asked {
  state: LayerState;
  store: Store;
}
