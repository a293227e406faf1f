import type { Camera } from "./camera.ts";
import { byId, make, short, svg } from "./dom.ts";
import { corners, scale, subtract, transform, type Box, type Vec3 } from "./math.ts";

const UNITS: Record<string, string> = { millimeter: "mm", micrometer: "µm", nanometer: "nm", meter: "m", centimeter: "cm", kilometer: "km" };
export const unitName = (unit: string | undefined): string => (unit ? (UNITS[unit] ?? unit) : "");

/** A step of 1, 2 or 5 times a power of ten, not above `most`. */
export function roundStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].find((times) => times * power <= most)! * power;
}

/** The edges of the box of the scene behind the data, as ends of lines. */
export function axisLines(box: Box, camera: Camera): { lines: number[]; edges: [number, Vec3, Vec3][] } {
  const back = camera.axes()[2];
  // The corner that is farthest from the viewer.
  const far = [0, 1, 2].map((axis) => (back[axis]! > 0 ? box.low[axis]! : box.high[axis]!)) as Vec3;
  const edges: [number, Vec3, Vec3][] = [];
  const points: number[] = [];
  const all = corners(box);
  for (let a = 0; a < 8; a++) {
    for (let axis = 0; axis < 3; axis++) {
      const b = a | (1 << axis);
      if (a === b) continue;
      const [p, q] = [all[a]!, all[b]!];
      const atFar = [0, 1, 2].filter((other) => other !== axis && p[other] === far[other]).length;
      if (atFar >= 1) points.push(...p, ...q);
      if (atFar === 1 && p[2] === box.low[2] && axis !== 2) edges.push([axis, p, q]);
      if (atFar === 1 && axis === 2) edges.push([axis, p, q]);
    }
  }
  const seen = new Set<number>();
  return { lines: points, edges: edges.filter(([axis]) => !seen.has(axis) && seen.add(axis)) };
}

/** Ticks and names of the axes. */
export function drawAxes(
  edges: [number, Vec3, Vec3][], camera: Camera, origin: Vec3, names: string[], units: (string | undefined)[],
): void {
  const overlay = byId("overlay") as unknown as SVGElement;
  const [width, height] = [innerWidth, innerHeight];
  const matrix = camera.matrix(width / height);
  const toScreen = (p: Vec3): [number, number] | undefined => {
    const [x, y, , w] = transform(matrix, p);
    return w > 0 ? [(x / w / 2 + 0.5) * width, (0.5 - y / w / 2) * height] : undefined;
  };
  const parts: SVGElement[] = [];
  for (const [axis, p, q] of edges) {
    const [from, to] = [toScreen(p), toScreen(q)];
    if (!from || !to) continue;
    const pixels = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (pixels < 60) continue;
    const middle = toScreen([0, 0, 0]) ?? from;
    const mid: [number, number] = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    const away = Math.hypot(mid[0] - middle[0], mid[1] - middle[1]) || 1;
    const out = [(mid[0] - middle[0]) / away, (mid[1] - middle[1]) / away] as const;
    const put = (at: [number, number], text: string, by: number) => parts.push(svg("text", {
      x: at[0] + out[0] * by, y: at[1] + out[1] * by + 4, "text-anchor": Math.abs(out[0]) < 0.4 ? "middle" : out[0] > 0 ? "start" : "end",
    }, text));
    const low = p[axis]! + origin[axis]!;
    const size = q[axis]! - p[axis]!;
    const step = roundStep(Math.max((size * 70) / pixels, size / 12)) * 1;
    for (let value = Math.ceil(low / step) * step; value <= low + size + step * 1e-6; value += step) {
      const t = (value - low) / size;
      const at = toScreen([0, 1, 2].map((k) => p[k]! + (q[k]! - p[k]!) * t) as Vec3);
      if (at) put(at, short(Number(value.toPrecision(10))), 10);
    }
    put(mid, `${names[axis] ?? ""}${units[axis] ? ` (${unitName(units[axis])})` : ""}`, 38);
  }
  overlay.replaceChildren(...parts);
}

export function drawScale(camera: Camera, unit: string | undefined): void {
  const pixel = camera.pixel(innerHeight);
  const size = roundStep(pixel * 160);
  byId("scale-bar").style.width = `${size / pixel}px`;
  byId("scale-text").textContent = `${short(size)} ${unitName(unit)}`;
}

/** The six directions, as buttons that turn the camera. */
export function makeCube(names: string[], turn: (yaw: number, pitch: number) => void): (camera: Camera) => void {
  const views: [Vec3, string, number, number][] = [
    [[1, 0, 0], `+${names[0] ?? "x"}`, 0, 0], [[-1, 0, 0], `−${names[0] ?? "x"}`, 180, 0],
    [[0, 1, 0], `+${names[1] ?? "y"}`, 90, 0], [[0, -1, 0], `−${names[1] ?? "y"}`, 270, 0],
    [[0, 0, 1], `+${names[2] ?? "z"}`, 270, 90], [[0, 0, -1], `−${names[2] ?? "z"}`, 270, -90],
  ];
  const colors = ["#e8606a", "#59c16a", "#4e9fd8"];
  const stage = svg("svg", { "aria-hidden": "true" });
  const buttons = views.map(([, name, yaw, pitch]) => {
    const button = make("button", { type: "button", "aria-label": `View from ${name}`, click: () => turn(yaw, pitch) });
    button.textContent = name.startsWith("+") ? name.slice(1, 3) : "";
    return button;
  });
  byId("cube").replaceChildren(stage as unknown as Node, ...buttons);
  return (camera) => {
    const [right, up, back] = camera.axes();
    const lines: SVGElement[] = [];
    views.forEach(([direction], at) => {
      const along = (axis: Vec3) => axis[0] * direction[0] + axis[1] * direction[1] + axis[2] * direction[2];
      const [x, y, z] = [46 + along(right) * 33, 46 - along(up) * 33, along(back)];
      const button = buttons[at]!;
      button.style.left = `${x}px`;
      button.style.top = `${y}px`;
      button.style.zIndex = String(Math.round(z * 10) + 20);
      button.style.borderColor = colors[at >> 1]!;
      if (at % 2 === 0) lines.push(svg("line", { x1: 46, y1: 46, x2: x, y2: y, stroke: colors[at >> 1]!, "stroke-width": 2 }));
    });
    stage.replaceChildren(...lines);
  };
}

export function padded(box: Box): Box {
  const size = subtract(box.high, box.low);
  const by = scale(size, 0.02);
  return { low: subtract(box.low, by), high: [box.high[0] + by[0], box.high[1] + by[1], box.high[2] + by[2]] };
}
