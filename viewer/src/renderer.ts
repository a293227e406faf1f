import { Program, texture } from "./gl.ts";
import { PROGRAMS, type ProgramName } from "./shaders.ts";
import type { Camera } from "./camera.ts";
import type { Geometry } from "./geometry.ts";
import { texels } from "./palette.ts";
import type { Vec3 } from "./math.ts";
import type { Slices } from "./slices.ts";

/** What is drawn in which tile: a grid of slots. */
export interface TileGrid {
  low: Vec3;
  size: Vec3;
  count: Vec3;
  slots: Uint8Array;
  texture?: WebGLTexture;
  isStale: boolean;
}

export interface Look {
  coloring: 0 | 1 | 2 | 3;
  map: string;
  range: [number, number];
  plain: Vec3;
  width: number;
  share: number;
  selected: number | undefined;
}

export interface Drawing {
  geometry: Geometry;
  slot: number;
  grid: TileGrid;
  look: Look;
}

export interface Frame {
  drawings: Drawing[];
  background: Vec3;
  slab: { normal: Vec3; at: number; width: number } | undefined;
  /** Ends of lines in pairs, and their colours. */
  lines: { ends: number[]; ink: readonly [number, number, number] }[];
  slices: Slices | undefined;
  samples: number;
}

export class Renderer {
  readonly gl: WebGL2RenderingContext;
  /** Whether the browser draws without a graphics card. */
  readonly isSoftware: boolean;
  private readonly programs: Record<ProgramName, Program>;
  private readonly maps = new Map<string, WebGLTexture>();
  private readonly lineBuffer: WebGLBuffer;
  private readonly lineArray: WebGLVertexArrayObject;
  private targets: Targets | undefined;

  constructor(readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("this browser has no WebGL 2, which the page needs to draw");
    this.gl = gl;
    // Some browsers tell the name of the renderer by an extension only.
    const named = gl.getExtension("WEBGL_debug_renderer_info");
    this.isSoftware = /swiftshader|llvmpipe|software/i.test(String(gl.getParameter(named?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
    this.programs = Object.fromEntries(
      Object.entries(PROGRAMS).map(([name, [vertex, fragment]]) => [name, new Program(gl, vertex, fragment)]),
    ) as Record<ProgramName, Program>;
    this.lineBuffer = gl.createBuffer();
    this.lineArray = gl.createVertexArray();
    gl.bindVertexArray(this.lineArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.lineBuffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(null);
    gl.enable(gl.DEPTH_TEST);
  }

  render(frame: Frame, camera: Camera): void {
    const { gl, canvas } = this;
    const [width, height] = [canvas.width, canvas.height];
    const samples = Math.min(frame.samples, gl.getParameter(gl.MAX_SAMPLES) as number);
    if (!this.targets || this.targets.width !== width || this.targets.height !== height || this.targets.samples !== samples) {
      this.targets?.free();
      this.targets = new Targets(gl, width, height, samples);
    }
    const targets = this.targets;
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.drawn);
    gl.viewport(0, 0, width, height);
    gl.clearColor(...frame.background, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.drawLines(frame, camera);
    if (frame.slices) this.drawSlices(frame.slices, camera);
    frame.drawings.forEach((drawing) => this.drawOne(drawing, frame, camera, 0));
    if (samples) {
      gl.bindFramebuffer(gl.READ_FRAMEBUFFER, targets.drawn);
      gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, targets.resolved);
      gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT, gl.NEAREST);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    const dome = this.programs.dome;
    dome.use();
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, targets.color);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, targets.depth);
    gl.uniform1i(dome.at("picture"), 0);
    gl.uniform1i(dome.at("depths"), 1);
    gl.uniform2f(dome.at("planes"), ...camera.planes());
    gl.uniform3f(dome.at("background"), ...frame.background);
    gl.uniform1f(dome.at("strength"), (2.2 * camera.distance) / camera.extent);
    gl.uniform1i(dome.at("reach"), Math.max(1, Math.round(height / 700)));
    gl.disable(gl.DEPTH_TEST);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.enable(gl.DEPTH_TEST);
  }

  /** Returns the drawing and its row at a pixel of the canvas, or undefined. */
  pick(x: number, y: number, frame: Frame, camera: Camera): { drawing: Drawing; row: number } | undefined {
    const { gl, canvas } = this;
    const targets = new PickTargets(gl, canvas.width, canvas.height);
    const reach = 3;
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.frame);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.enable(gl.SCISSOR_TEST);
    const [left, bottom, size] = [Math.round(x) - reach, canvas.height - 1 - Math.round(y) - reach, 2 * reach + 1];
    gl.scissor(left, bottom, size, size);
    gl.clearBufferuiv(gl.COLOR, 1, [0, 0, 0, 0]);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    if (frame.slices) this.drawSlices(frame.slices, camera);
    frame.drawings.forEach((drawing, at) => this.drawOne(drawing, frame, camera, at + 1));
    gl.disable(gl.SCISSOR_TEST);
    const found = new Uint32Array(size * size * 4);
    gl.readBuffer(gl.COLOR_ATTACHMENT1);
    gl.readPixels(left, bottom, size, size, gl.RGBA_INTEGER, gl.UNSIGNED_INT, found);
    targets.free();
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    let best: { drawing: Drawing; row: number } | undefined;
    let nearest = Infinity;
    for (let at = 0; at < size * size; at++) {
      const far = Math.hypot((at % size) - reach, Math.floor(at / size) - reach);
      const drawing = frame.drawings[found[at * 4]! - 1];
      if (drawing && far < nearest) {
        nearest = far;
        const row = found[at * 4 + 1]!;
        best = { drawing, row: drawing.geometry.rows?.[row] ?? row };
      }
    }
    return best;
  }

  private common(program: Program, camera: Camera, width: number): void {
    const { gl, canvas } = this;
    const [right, up] = camera.axes();
    program.use();
    gl.uniformMatrix4fv(program.at("matrix"), false, camera.matrix(canvas.width / canvas.height));
    gl.uniform3f(program.at("eye"), ...camera.eye());
    gl.uniform3f(program.at("right"), ...right);
    gl.uniform3f(program.at("up"), ...up);
    gl.uniform1f(program.at("pixel"), camera.pixel(canvas.height) / camera.distance);
    gl.uniform1f(program.at("width"), width);
  }

  private drawOne(drawing: Drawing, frame: Frame, camera: Camera, number: number): void {
    const { gl } = this;
    const { geometry, look, grid, slot } = drawing;
    const program = this.programs[geometry.shape];
    this.common(program, camera, look.width);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_3D, this.tiles(grid));
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.map(look.coloring === 2 ? "categories" : look.map));
    for (const [at, name] of ["tiles", "colors", "places", "owners", "values"].entries()) gl.uniform1i(program.at(name), at);
    gl.uniform3f(program.at("tileLow"), ...grid.low);
    gl.uniform3f(program.at("tileSize"), ...grid.size);
    gl.uniform1ui(program.at("slot"), slot);
    gl.uniform1f(program.at("shareOf"), look.share);
    gl.uniform1ui(program.at("selected"), look.selected ?? 0xffffffff);
    gl.uniform1i(program.at("coloring"), look.coloring);
    gl.uniform2f(program.at("range"), ...look.range);
    gl.uniform3f(program.at("plain"), ...look.plain);
    gl.uniform4f(program.at("slab"), ...(frame.slab?.normal ?? [0, 0, 1]), frame.slab?.at ?? 0);
    gl.uniform1f(program.at("slabWidth"), frame.slab?.width ?? 0);
    gl.uniform1ui(program.at("drawing"), number);
    geometry.draw();
  }

  private drawLines(frame: Frame, camera: Camera): void {
    const { gl } = this;
    const program = this.programs.line;
    this.common(program, camera, 1);
    gl.bindVertexArray(this.lineArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.lineBuffer);
    for (const { ends, ink } of frame.lines) {
      gl.uniform4f(program.at("ink"), ...ink, 1);
      gl.bufferData(gl.ARRAY_BUFFER, Float32Array.from(ends), gl.DYNAMIC_DRAW);
      gl.drawArrays(gl.LINES, 0, ends.length / 3);
    }
    gl.bindVertexArray(null);
  }

  private drawSlices({ triangles, texture, toTexture, window }: Slices, camera: Camera): void {
    const { gl } = this;
    const program = this.programs.slice;
    this.common(program, camera, 1);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_3D, texture);
    gl.uniform1i(program.at("volume"), 0);
    gl.uniformMatrix4fv(program.at("toTexture"), false, toTexture);
    gl.uniform2f(program.at("levels"), ...window);
    gl.bindVertexArray(this.lineArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.lineBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, triangles, gl.DYNAMIC_DRAW);
    gl.drawArrays(gl.TRIANGLES, 0, triangles.length / 3);
    gl.bindVertexArray(null);
  }

  private map(name: string): WebGLTexture {
    let made = this.maps.get(name);
    if (!made) {
      const { gl } = this;
      made = texture(gl, gl.RGBA8, 256, 1, gl.RGBA, gl.UNSIGNED_BYTE, texels(name), gl.LINEAR);
      this.maps.set(name, made);
    }
    return made;
  }

  private tiles(grid: TileGrid): WebGLTexture {
    const { gl } = this;
    if (!grid.texture || grid.isStale) {
      grid.texture ??= gl.createTexture();
      gl.bindTexture(gl.TEXTURE_3D, grid.texture);
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
      gl.texImage3D(gl.TEXTURE_3D, 0, gl.R8UI, ...grid.count, 0, gl.RED_INTEGER, gl.UNSIGNED_BYTE, grid.slots);
      gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
      grid.isStale = false;
    }
    return grid.texture;
  }
}

/** The picture before eye-dome lighting. */
class Targets {
  readonly drawn: WebGLFramebuffer;
  readonly resolved: WebGLFramebuffer;
  readonly color: WebGLTexture;
  readonly depth: WebGLTexture;
  private readonly renderbuffers: WebGLRenderbuffer[] = [];

  constructor(private readonly gl: WebGL2RenderingContext, readonly width: number, readonly height: number, readonly samples: number) {
    this.color = texture(gl, gl.RGBA8, width, height, gl.RGBA, gl.UNSIGNED_BYTE, null);
    this.depth = texture(gl, gl.DEPTH_COMPONENT24, width, height, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, null);
    this.resolved = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.resolved);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.color, 0);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.depth, 0);
    this.drawn = this.resolved;
    if (samples) {
      this.drawn = gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.drawn);
      for (const [format, at] of [[gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.DEPTH_COMPONENT24, gl.DEPTH_ATTACHMENT]] as const) {
        const buffer = gl.createRenderbuffer();
        gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
        gl.renderbufferStorageMultisample(gl.RENDERBUFFER, samples, format, width, height);
        gl.framebufferRenderbuffer(gl.FRAMEBUFFER, at, gl.RENDERBUFFER, buffer);
        this.renderbuffers.push(buffer);
      }
    }
  }

  free(): void {
    const { gl } = this;
    for (const buffer of this.renderbuffers) gl.deleteRenderbuffer(buffer);
    gl.deleteFramebuffer(this.resolved);
    if (this.drawn !== this.resolved) gl.deleteFramebuffer(this.drawn);
    gl.deleteTexture(this.color);
    gl.deleteTexture(this.depth);
  }
}

/** Where rows are drawn instead of colours. */
class PickTargets {
  readonly frame: WebGLFramebuffer;
  private readonly buffers: WebGLRenderbuffer[] = [];

  constructor(private readonly gl: WebGL2RenderingContext, width: number, height: number) {
    this.frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frame);
    for (const [format, at] of [
      [gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.RG32UI, gl.COLOR_ATTACHMENT1], [gl.DEPTH_COMPONENT24, gl.DEPTH_ATTACHMENT],
    ] as const) {
      const buffer = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
      gl.renderbufferStorage(gl.RENDERBUFFER, format, width, height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, at, gl.RENDERBUFFER, buffer);
      this.buffers.push(buffer);
    }
    gl.drawBuffers([gl.COLOR_ATTACHMENT0, gl.COLOR_ATTACHMENT1]);
  }

  free(): void {
    for (const buffer of this.buffers) this.gl.deleteRenderbuffer(buffer);
    this.gl.deleteFramebuffer(this.frame);
  }
}
