import { add, clamp, multiply, scale, type Box, type Mat4, type Vec3, center, length, subtract } from "./math.ts";

const FIELD = (35 * Math.PI) / 180;

/** A camera that orbits a target; the third axis points up. Angles are in degrees. */
export class Camera {
  target: Vec3 = [0, 0, 0];
  distance = 1;
  yaw = -60;
  pitch = 18;
  /** The size of the scene, for the planes that clip it. */
  extent = 1;

  fit(box: Box, aspect: number): void {
    this.target = center(box);
    this.extent = Math.max(length(subtract(box.high, box.low)), 1e-6);
    this.distance = (this.extent * 0.47) / Math.sin(FIELD / 2) / Math.min(1, aspect);
  }

  /** Right, up, and towards the viewer. */
  axes(): [Vec3, Vec3, Vec3] {
    const [y, p] = [(this.yaw * Math.PI) / 180, (this.pitch * Math.PI) / 180];
    const back: Vec3 = [Math.cos(p) * Math.cos(y), Math.cos(p) * Math.sin(y), Math.sin(p)];
    const right: Vec3 = [-Math.sin(y), Math.cos(y), 0];
    const up: Vec3 = [-Math.sin(p) * Math.cos(y), -Math.sin(p) * Math.sin(y), Math.cos(p)];
    return [right, up, back];
  }

  eye(): Vec3 {
    return add(this.target, scale(this.axes()[2], this.distance));
  }

  view(): Mat4 {
    const [r, u, b] = this.axes();
    const e = this.eye();
    const along = (axis: Vec3) => -(axis[0] * e[0] + axis[1] * e[1] + axis[2] * e[2]);
    return new Float32Array([
      r[0], u[0], b[0], 0, r[1], u[1], b[1], 0, r[2], u[2], b[2], 0, along(r), along(u), along(b), 1,
    ]);
  }

  planes(): [number, number] {
    const far = this.distance + this.extent * 1.2;
    return [Math.max(this.distance - this.extent * 1.2, far * 1e-3), far];
  }

  projection(aspect: number): Mat4 {
    const f = 1 / Math.tan(FIELD / 2);
    const [near, far] = this.planes();
    const d = near - far;
    return new Float32Array([
      f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / d, -1, 0, 0, (2 * far * near) / d, 0,
    ]);
  }

  matrix(aspect: number): Mat4 {
    return multiply(this.projection(aspect), this.view());
  }

  /** The world length of a pixel at the target, in a window of this height. */
  pixel(height: number): number {
    return (2 * this.distance * Math.tan(FIELD / 2)) / height;
  }

  rotate(yaw: number, pitch: number): void {
    this.yaw = (((this.yaw + yaw) % 360) + 360) % 360;
    this.pitch = clamp(this.pitch + pitch, -90, 90);
  }

  /** Moves the target by pixels. */
  pan(x: number, y: number, height: number): void {
    const [right, up] = this.axes();
    const step = this.pixel(height);
    this.target = add(this.target, add(scale(right, -x * step), scale(up, y * step)));
  }

  /** Changes the distance and keeps the point below the cursor, given in pixels from the middle. */
  zoom(factor: number, x: number, y: number, height: number): void {
    const to = clamp(this.distance * factor, this.extent * 1e-4, this.extent * 20);
    const step = (this.pixel(height) * (this.distance - to)) / this.distance;
    this.distance = to;
    const [right, up] = this.axes();
    this.target = add(this.target, add(scale(right, x * step), scale(up, -y * step)));
  }
}
