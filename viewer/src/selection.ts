import type { LayerState } from "./state.ts";
import type { Description, Query } from "./store.ts";

/** How a column is written in a predicate. */
export function column(scope: string, name: string): string {
  const isPlain = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) && !/^(and|or|not|in|is|null|true|false|between)$/i.test(name);
  return `${scope}.${isPlain ? name : `"${name.replaceAll('"', '""')}"`}`;
}

export const isPaths = (description: Description): boolean => /line/.test(description.geometry);
export const isMesh = (description: Description): boolean => /mesh/.test(description.geometry);

/** The query that a layer asks: what the panel selects, as one question to the engine. */
export function question(state: LayerState): Query {
  const query: Query = {};
  const tests = Object.entries(state.ranges).map(([name, [low, high]]) => {
    const at = name.indexOf(".");
    return `${column(name.slice(0, at), name.slice(at + 1))} between ${low} and ${high}`;
  });
  if (state.where.trim()) tests.unshift(tests.length ? `(${state.where.trim()})` : state.where.trim());
  if (tests.length) query.where = tests.join(" and ");
  if (state.isIsolated && state.object !== undefined) query.objects = [state.object];
  else if (state.groups.length) query.groups = state.groups;
  const region = state.region;
  if (region?.shape === "sphere") query.sphere = [region.center, region.radius];
  if (region?.shape === "box") {
    query.bbox = [region.center.map((at, axis) => at - region.size[axis]! / 2), region.center.map((at, axis) => at + region.size[axis]! / 2)];
  }
  return query;
}
