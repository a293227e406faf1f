import { corners, type Vec3 } from "./math.ts";
import type { Region } from "./state.ts";

/** The outline of a region, as ends of lines. */
export function outline(region: Region, origin: Vec3): number[] {
  const middle = region.center.map((value, axis) => value - origin[axis]!) as Vec3;
  const points: number[] = [];
  if (region.shape === "box") {
    const half = region.size.map((value) => value / 2);
    const all = corners({ low: middle.map((v, axis) => v - half[axis]!) as Vec3, high: middle.map((v, axis) => v + half[axis]!) as Vec3 });
    for (let a = 0; a < 8; a++) {
      for (const bit of [1, 2, 4]) if (!(a & bit)) points.push(...all[a]!, ...all[a | bit]!);
    }
  } else {
    const steps = 64;
    for (let axis = 0; axis < 3; axis++) {
      for (let k = 0; k < steps; k++) {
        for (const at of [k, k + 1]) {
          const angle = (at / steps) * 2 * Math.PI;
          const p = [...middle] as Vec3;
          p[(axis + 1) % 3]! += Math.cos(angle) * region.radius;
          p[(axis + 2) % 3]! += Math.sin(angle) * region.radius;
          points.push(...p);
        }
      }
    }
  }
  return points;
}
