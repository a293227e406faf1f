import { NO_VALUE } from "./geometry.ts";

/** Counts values of a column in bins. */
export function histogram(values: Float32Array, size = 40): { low: number; high: number; bins: number[] } | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value <= NO_VALUE) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(low < high)) return undefined;
  const bins = new Array<number>(size).fill(0);
  for (const value of values) if (value > NO_VALUE) bins[Math.min(size - 1, Math.floor(((value - low) / (high - low)) * size))]!++;
  return { low, high, bins };
}
