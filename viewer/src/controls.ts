import type { Camera } from "./camera.ts";
import type { Vec3 } from "./math.ts";

export interface Gestures {
  moved(): void;
  clicked(x: number, y: number): void;
  /** Returns what a drag that starts here moves, other than the camera. */
  grab(x: number, y: number): ((by: Vec3) => void) | undefined;
  key(event: KeyboardEvent): boolean;
}

/** Mouse, touch and keys on the scene. */
export function control(canvas: HTMLCanvasElement, camera: Camera, gestures: Gestures): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let grabbed: ((by: Vec3) => void) | undefined;
  const height = () => canvas.clientHeight;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 1) {
      travelled = 0;
      grabbed = gestures.grab(event.clientX, event.clientY);
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const [x, y] = [event.clientX - last.x, event.clientY - last.y];
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const other = others[0];
    travelled += Math.abs(x) + Math.abs(y);
    if (other) {
      const before = Math.hypot(last.x - other.x, last.y - other.y);
      const after = Math.hypot(event.clientX - other.x, event.clientY - other.y);
      camera.pan(x / 2, y / 2, height());
      const middle = [(event.clientX + other.x) / 2 - canvas.clientWidth / 2, (event.clientY + other.y) / 2 - height() / 2] as const;
      if (after > 0) camera.zoom(before / after, ...middle, height());
    } else if (grabbed) {
      const [right, up] = camera.axes();
      const step = camera.pixel(height());
      grabbed([0, 1, 2].map((axis) => (right[axis]! * x - up[axis]! * y) * step) as Vec3);
    } else if (event.buttons & 6 || event.shiftKey) camera.pan(x, y, height());
    else camera.rotate(-x * 0.35, y * 0.35);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    gestures.moved();
  });
  const end = (event: PointerEvent): void => {
    const known = pointers.delete(event.pointerId);
    if (known && event.type === "pointerup" && !pointers.size && travelled < 5 && event.button === 0) gestures.clicked(event.clientX, event.clientY);
    if (!pointers.size) grabbed = undefined;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const by = Math.min(Math.max(event.deltaY * (event.deltaMode ? 30 : 1), -300), 300);
    camera.zoom(Math.exp(by * 0.0016), event.clientX - canvas.clientWidth / 2, event.clientY - height() / 2, height());
    gestures.moved();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (move(event) || gestures.key(event)) event.preventDefault();
  });

  function move(event: KeyboardEvent): boolean {
    const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[event.key];
    if (arrow) {
      if (event.shiftKey) camera.pan(-arrow[0] * 40, -arrow[1] * 40, height());
      else camera.rotate(arrow[0] * 6, -arrow[1] * 6);
    } else if (event.key === "+" || event.key === "=") camera.zoom(0.8, 0, 0, height());
    else if (event.key === "-") camera.zoom(1.25, 0, 0, height());
    else return false;
    gestures.moved();
    return true;
  }
}
