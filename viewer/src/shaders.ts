/** Programs of the GPU. All geometry shares the same tests (tile, slab, share) and colours. */

const COMMON = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler3D;
precision highp sampler2D;
precision highp usampler2D;
uniform mat4 matrix;
uniform vec3 eye;
uniform vec3 right;
uniform vec3 up;
uniform vec2 viewport;
uniform float pixel;        // world length of a pixel at distance 1
uniform float width;        // world radius of lines and points
uniform float shareOf;      // share of objects that is drawn
uniform uint selected;      // object that is highlighted; 0xffffffffu is none

uint hash(uint h) {
  h ^= h >> 16; h *= 0x7feb352du; h ^= h >> 15; h *= 0x846ca68bu; return h ^ (h >> 16);
}
bool isShown(uint id) { return float(hash(id) >> 8) < shareOf * 16777216.0; }
`;

/** The end of each fragment shader: what is hidden, and the colour or the row of what is shown. */
const SHADE = `
uniform usampler3D tiles;   // what is drawn in each tile
uniform vec3 tileLow;
uniform vec3 tileSize;
uniform uint slot;          // what this geometry is
uniform vec4 slab;          // normal, position
uniform float slabWidth;    // 0 is no slab
uniform sampler2D colors;
uniform vec2 range;
uniform int coloring;       // 0 values, 1 orientation, 2 categories, 3 one colour
uniform vec3 plain;
uniform uint drawing;
layout(location = 0) out vec4 color;
layout(location = 1) out uvec2 picked;

void test(vec3 at) {
  ivec3 cell = clamp(ivec3(floor((at - tileLow) / tileSize)), ivec3(0), textureSize(tiles, 0) - 1);
  if (texelFetch(tiles, cell, 0).r != slot) discard;
  if (slabWidth > 0.0 && abs(dot(slab.xyz, at) - slab.w) > slabWidth * 0.5) discard;
}
vec3 base(float value, vec3 direction) {
  if (coloring == 1) { vec3 d = abs(direction); return d / max(max(d.x, max(d.y, d.z)), 1e-6) * 0.85 + 0.08; }
  if (coloring == 3) return plain;
  if (value < -1e37) return vec3(0.54, 0.56, 0.6);
  if (coloring == 2) return texelFetch(colors, ivec2(int(mod(value + 0.5, 256.0)), 0), 0).rgb;
  float t = clamp((value - range.x) / max(range.y - range.x, 1e-30), 0.0, 1.0);
  return texture(colors, vec2(t * 255.0 / 256.0 + 0.5 / 256.0, 0.5)).rgb;
}
void paint(vec3 tint, float light, float shine, uint id, uint row) {
  if (id == selected) { tint = mix(tint, vec3(1.0, 0.95, 0.55), 0.75); light = max(light, 0.85); }
  else if (selected != 0xffffffffu) tint = mix(tint * 0.45, vec3(dot(tint, vec3(0.2, 0.3, 0.1))), 0.5);
  color = vec4(tint * light + shine, 1.0);
  picked = uvec2(drawing, row);
}
`;

/** Segments of lines become ribbons that face the viewer and are shaded as tubes. The vertices are
 * read from textures, because instances are slow in software. */
const RIBBON_VERTEX = `${COMMON}
uniform sampler2D places;   // position, relative radius
uniform usampler2D owners;  // object, flags: 1 starts a line, 2 ends it
uniform sampler2D values;
out vec3 place;
out vec3 direction;
out float across;
out float value;
flat out float category;
flat out uint id;
flat out uint row;

ivec2 texel(int at) { int columns = textureSize(places, 0).x; return ivec2(at % columns, at / columns); }

void main() {
  int at = gl_VertexID / 6;
  int corner = gl_VertexID % 6;
  bool isFar = corner == 2 || corner == 4 || corner == 5;
  float side = (corner == 0 || corner == 2 || corner == 4) ? -1.0 : 1.0;
  uvec2 here = texelFetch(owners, texel(at), 0).rg;
  if ((here.g & 2u) != 0u || !isShown(here.r)) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
  vec4 a = texelFetch(places, texel(at), 0);
  vec4 b = texelFetch(places, texel(at + 1), 0);
  uint flags = texelFetch(owners, texel(at + 1), 0).g;
  vec3 along = b.xyz - a.xyz;
  vec3 tangent = along;
  if (isFar) { if ((flags & 2u) == 0u) tangent += texelFetch(places, texel(at + 2), 0).xyz - b.xyz; }
  else if ((here.g & 1u) == 0u) tangent += a.xyz - texelFetch(places, texel(at - 1), 0).xyz;
  vec4 end = isFar ? b : a;
  vec3 sight = eye - end.xyz;
  float least = 0.6 * pixel * length(sight);
  float radius = max(width * end.w, least);
  vec3 n = cross(tangent, sight);
  vec3 offset = normalize(dot(n, n) > 0.0 ? n : right) * radius;
  // Ends of links reach into each other.
  vec3 cap = normalize(along + 1e-30) * radius * 0.5;
  if (isFar && (flags & 2u) != 0u && (here.g & 1u) != 0u) offset = offset * side + cap;
  else if (!isFar && (here.g & 1u) != 0u && (flags & 2u) != 0u) offset = offset * side - cap;
  else offset *= side;
  place = end.xyz;
  gl_Position = matrix * vec4(end.xyz + offset, 1.0);
  direction = tangent;
  across = side;
  value = texelFetch(values, texel(isFar ? at + 1 : at), 0).r;
  category = texelFetch(values, texel(at), 0).r;
  id = here.r;
  row = uint(at);
}`;

const RIBBON_FRAGMENT = `${COMMON}${SHADE}
in vec3 place;
in vec3 direction;
in float across;
in float value;
flat in float category;
flat in uint id;
flat in uint row;
void main() {
  test(place);
  vec3 sight = normalize(eye - place);
  vec3 along = normalize(direction + 1e-30);
  vec3 side = normalize(cross(along, sight) + 1e-30);
  vec3 normal = side * across + normalize(cross(side, along)) * sqrt(max(0.0, 1.0 - across * across));
  vec3 lamp = normalize(sight + 0.45 * up - 0.35 * right);
  float light = 0.34 + 0.72 * max(0.0, dot(normal, lamp));
  float shine = 0.22 * pow(max(0.0, dot(normal, normalize(lamp + sight))), 24.0);
  paint(base(coloring == 2 ? category : value, along), light, shine, id, row);
}`;

const POINT_VERTEX = `${COMMON}
layout(location = 0) in vec3 position;
layout(location = 1) in float inValue;
layout(location = 2) in uint inObject;
out vec3 place;
out float value;
flat out float category;
flat out uint id;
flat out uint row;
void main() {
  place = position;
  value = inValue;
  category = inValue;
  id = inObject;
  row = uint(gl_VertexID);
  gl_Position = isShown(inObject) ? matrix * vec4(position, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = clamp(2.0 * width / (pixel * length(eye - position)), 1.5, 48.0);
}`;

const POINT_FRAGMENT = `${COMMON}${SHADE}
in vec3 place;
in float value;
flat in float category;
flat in uint id;
flat in uint row;
void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  float far = dot(at, at);
  if (far > 1.0) discard;
  test(place);
  float light = 0.62 + 0.4 * (sqrt(1.0 - far) * 0.75 + 0.3 * (-at.y - at.x));
  paint(base(coloring == 2 ? category : value, vec3(0.577)), light, 0.0, id, row);
}`;

const MESH_VERTEX = `${COMMON}
layout(location = 0) in vec3 position;
layout(location = 1) in float inValue;
layout(location = 2) in uint inObject;
layout(location = 3) in vec3 inNormal;
out vec3 place;
out vec3 normal;
out float value;
flat out float category;
flat out uint id;
flat out uint row;
void main() {
  place = position;
  normal = inNormal;
  value = inValue;
  category = inValue;
  id = inObject;
  row = uint(gl_VertexID);
  gl_Position = matrix * vec4(position, 1.0);
}`;

const MESH_FRAGMENT = `${COMMON}${SHADE}
in vec3 place;
in vec3 normal;
in float value;
flat in float category;
flat in uint id;
flat in uint row;
void main() {
  test(place);
  vec3 sight = normalize(eye - place);
  vec3 n = normalize(normal + 1e-30);
  if (dot(n, sight) < 0.0) n = -n;
  vec3 lamp = normalize(sight + 0.6 * up - 0.5 * right);
  float light = 0.28 + 0.62 * max(0.0, dot(n, lamp)) + 0.16 * (0.5 + 0.5 * dot(n, up));
  float shine = 0.16 * pow(max(0.0, dot(n, normalize(lamp + sight))), 32.0);
  paint(base(coloring == 2 ? category : value, n), light, shine, id, row);
}`;

/** Thin lines in one colour: the axes. */
const LINE_VERTEX = `${COMMON}
layout(location = 0) in vec3 position;
void main() { gl_Position = matrix * vec4(position, 1.0); }`;
const LINE_FRAGMENT = `${COMMON}
uniform vec4 ink;
layout(location = 0) out vec4 color;
layout(location = 1) out uvec2 picked;
void main() { color = ink; picked = uvec2(0u); }`;

/** Slices of a volume, in grey. What is black is not drawn. */
const SLICE_VERTEX = `${COMMON}
layout(location = 0) in vec3 position;
uniform mat4 toTexture;
out vec3 place;
void main() {
  place = (toTexture * vec4(position, 1.0)).xyz;
  gl_Position = matrix * vec4(position, 1.0);
}`;
const SLICE_FRAGMENT = `${COMMON}
precision highp sampler3D;
uniform sampler3D volume;
uniform vec2 levels;        // values that are black and white
in vec3 place;
layout(location = 0) out vec4 color;
layout(location = 1) out uvec2 picked;
void main() {
  if (place != clamp(place, 0.0, 1.0)) discard;
  float share = (texture(volume, place).r - levels.x) / max(levels.y - levels.x, 1e-9);
  if (share <= 0.0) discard;
  color = vec4(vec3(min(share, 1.0)), 1.0);
  picked = uvec2(0u);
}`;

/** Darkens what lies behind its neighbours (eye-dome lighting), and fills the background. */
const DOME_VERTEX = `#version 300 es
void main() { gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0); }`;
const DOME_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D picture;
uniform sampler2D depths;
uniform vec2 planes;
uniform vec3 background;
uniform float strength;
uniform int reach;
out vec4 color;
float far(ivec2 at) {
  float z = texelFetch(depths, at, 0).r;
  if (z >= 1.0) return 1e9;
  return log2(2.0 * planes.x * planes.y / (planes.y + planes.x - (2.0 * z - 1.0) * (planes.y - planes.x)));
}
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  ivec2 last = textureSize(depths, 0) - 1;
  vec2 off = gl_FragCoord.xy / vec2(last) - 0.5;
  vec4 here = texelFetch(picture, at, 0);
  vec3 back = background * (1.0 - 0.22 * dot(off, off));
  float own = far(at);
  float shade = 0.0;
  if (own < 1e8) {
    for (int k = 0; k < 8; k++) {
      float angle = float(k) * 0.7853982;
      ivec2 to = clamp(at + ivec2(round(vec2(cos(angle), sin(angle)) * float(reach))), ivec2(0), last);
      shade += clamp((own - far(to)) * strength, 0.0, 0.14);
    }
  }
  color = vec4(mix(back, here.rgb * exp(-shade), here.a), 1.0);
}`;

export const PROGRAMS = {
  paths: [RIBBON_VERTEX, RIBBON_FRAGMENT],
  points: [POINT_VERTEX, POINT_FRAGMENT],
  mesh: [MESH_VERTEX, MESH_FRAGMENT],
  slice: [SLICE_VERTEX, SLICE_FRAGMENT],
  line: [LINE_VERTEX, LINE_FRAGMENT],
  dome: [DOME_VERTEX, DOME_FRAGMENT],
} as const;

export type ProgramName = keyof typeof PROGRAMS;
