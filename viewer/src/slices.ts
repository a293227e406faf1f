/** A volume as slices along the axes of the scene. */
import { histogram } from "./histogram.ts";
import { affine, inverse, scale, subtract, type Affine, type Box, type Mat4, type Vec3 } from "./math.ts";
import type { Volume } from "./nifti.ts";
import type { VolumeState } from "./state.ts";

/** What the renderer draws: triangles, and how they lie in the texture. */
export interface Slices {
  triangles: Float32Array;
  texture: WebGLTexture;
  /** Maps positions of the scene to coordinates of the texture. */
  toTexture: Mat4;
  /** Values of the texture that are black and white. */
  window: [number, number];
}

const SAMPLES = 200_000;

export class VolumeSlices {
  readonly name: string;
  readonly box: Box;
  /** The lowest and the highest value. */
  readonly range: [number, number];
  readonly counts: ReturnType<typeof histogram>;
  private readonly texture: WebGLTexture;
  private readonly toVoxel: Affine;

  /** Places a volume in a scene with this many millimetres per unit. */
  constructor(private readonly gl: WebGL2RenderingContext, private readonly volume: Volume, perUnit: number, readonly state: VolumeState) {
    const { size, values, name } = volume;
    this.name = name;
    const most = gl.getParameter(gl.MAX_3D_TEXTURE_SIZE) as number;
    if (size.some((extent) => extent > most)) throw new Error(`${name} has ${size.join(" × ")} voxels; this browser draws at most ${most} along an axis`);
    const toScene = volume.toWorld.map((value) => (value * volume.millimeters) / perUnit);
    this.toVoxel = inverse(toScene)!;
    const ends = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) => affine(toScene, size.map((extent, axis) => ((bits >> axis) & 1 ? extent - 0.5 : -0.5)) as Vec3));
    const limit = (choose: (...values: number[]) => number) => [0, 1, 2].map((axis) => choose(...ends.map((end) => end[axis]!))) as Vec3;
    this.box = { low: limit(Math.min), high: limit(Math.max) };
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low && value > -Infinity) low = value;
      if (value > high && value < Infinity) high = value;
    }
    if (low > high) throw new Error(`${name} has no number`);
    this.range = [low, high > low ? high : low + 1];
    const step = Math.max(1, Math.floor(values.length / SAMPLES));
    const sample = Float32Array.from({ length: Math.ceil(values.length / step) }, (_, k) => values[k * step]!).filter((value) => value >= low && value <= high);
    this.counts = histogram(sample.filter((value) => value > low));
    state.window ??= suited(sample, this.range);
    state.at ??= scale([0, 1, 2].map((axis) => this.box.low[axis]! + this.box.high[axis]!) as Vec3, 0.5);
    this.texture = this.upload();
  }

  private upload(): WebGLTexture {
    const { gl, volume: { size, values }, range: [low, high] } = this;
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_3D, texture);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
    // What is no number is below every window.
    const shares = values.map((value) => (value >= low ? Math.min((value - low) / (high - low), 1) : -1));
    gl.texImage3D(gl.TEXTURE_3D, 0, gl.R16F, ...size, 0, gl.RED, gl.FLOAT, shares);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_3D, name, gl.LINEAR);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R]) gl.texParameteri(gl.TEXTURE_3D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  /** The value of the voxel that contains a position; undefined outside of the volume. */
  value(at: Vec3): number | undefined {
    const { size, values } = this.volume;
    const voxel = affine(this.toVoxel, at).map(Math.round) as Vec3;
    if (voxel.some((index, axis) => index < 0 || index >= size[axis]!)) return undefined;
    return values[voxel[0] + size[0] * (voxel[1] + size[1] * voxel[2])];
  }

  /** What is drawn, relative to the origin of the scene; undefined for nothing. */
  slices(origin: Vec3): Slices | undefined {
    const { state } = this;
    const axes = [0, 1, 2].filter((axis) => state.shown[axis]);
    if (!state.isVisible || !axes.length) return undefined;
    const [low, high] = [subtract(this.box.low, origin), subtract(this.box.high, origin)];
    const triangles = axes.flatMap((axis) => [0, 1, 2, 2, 1, 3].flatMap((corner) => {
      const place = [...low] as Vec3;
      place[axis] = state.at![axis]! - origin[axis]!;
      [(axis + 1) % 3, (axis + 2) % 3].forEach((other, bit) => {
        if ((corner >> bit) & 1) place[other] = high[other]!;
      });
      return place;
    }));
    const { size } = this.volume;
    // The origin of the scene may be far away, where single precision is not enough.
    const shifted = affine(this.toVoxel, origin);
    const rows = [0, 1, 2].map((row) => [...this.toVoxel.slice(row * 4, row * 4 + 3), shifted[row]! + 0.5].map((value) => value / size[row]!));
    const toTexture = new Float32Array([0, 1, 2, 3].flatMap((column) => [...rows.map((row) => row[column]!), column === 3 ? 1 : 0]));
    const share = (value: number) => (value - this.range[0]) / (this.range[1] - this.range[0]);
    const [black, white] = state.window!;
    return { triangles: Float32Array.from(triangles), texture: this.texture, toTexture, window: [share(black), share(white)] };
  }

  free(): void {
    this.gl.deleteTexture(this.texture);
  }
}

/** A window up to what 98 % of the values above the background lie below, and from above its noise. The background is the
 * lowest value. */
function suited(sample: Float32Array, range: [number, number]): [number, number] {
  const above = sample.filter((value) => value > range[0]).sort();
  const high = above[Math.floor(above.length * 0.98)] ?? range[1];
  return [range[0] + (high - range[0]) * 0.06, high];
}
