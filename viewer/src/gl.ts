/** Programs and textures of WebGL2. */
export class Program {
  private readonly handle: WebGLProgram;
  private readonly places = new Map<string, WebGLUniformLocation | null>();

  constructor(private readonly gl: WebGL2RenderingContext, vertex: string, fragment: string) {
    this.handle = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(this.handle, shader);
    }
    gl.linkProgram(this.handle);
    if (!gl.getProgramParameter(this.handle, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(this.handle)!.map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`this browser refuses a program of the page: ${logs.join(" ")}`);
    }
  }

  use(): void {
    this.gl.useProgram(this.handle);
  }

  at(name: string): WebGLUniformLocation | null {
    let place = this.places.get(name);
    if (place === undefined) {
      place = this.gl.getUniformLocation(this.handle, name);
      this.places.set(name, place);
    }
    return place;
  }
}

const COLUMNS = 2048;

/** Returns a texture that holds a number of items in rows, to be fetched by index. */
export function table(
  gl: WebGL2RenderingContext,
  data: Float32Array | Uint32Array,
  channels: 1 | 2 | 4,
): WebGLTexture {
  const rows = Math.max(1, Math.ceil(data.length / channels / COLUMNS));
  const padded = data instanceof Float32Array
    ? new Float32Array(rows * COLUMNS * channels)
    : new Uint32Array(rows * COLUMNS * channels);
  padded.set(data);
  const [internal, format, type] = data instanceof Float32Array
    ? channels === 4 ? [gl.RGBA32F, gl.RGBA, gl.FLOAT] : [gl.R32F, gl.RED, gl.FLOAT]
    : [gl.RG32UI, gl.RG_INTEGER, gl.UNSIGNED_INT];
  return texture(gl, internal!, COLUMNS, rows, format!, type!, padded);
}

export function texture(
  gl: WebGL2RenderingContext, internal: number, width: number, height: number, format: number, type: number,
  data: ArrayBufferView | null, filter: number = gl.NEAREST,
): WebGLTexture {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texImage2D(gl.TEXTURE_2D, 0, internal, width, height, 0, format, type, data);
  for (const [name, value] of [
    [gl.TEXTURE_MIN_FILTER, filter], [gl.TEXTURE_MAG_FILTER, filter],
    [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
  ] as const) gl.texParameteri(gl.TEXTURE_2D, name, value);
  return made;
}
