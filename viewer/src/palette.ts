/** Colour maps, as rows of 256 colours. */

/** Control points of perceptual maps, evenly spaced. */
const MAPS: Record<string, string[]> = {
  viridis: ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6dcd59", "b4de2c", "fde725"],
  magma: ["221150", "3b0f70", "641a80", "8c2981", "b73779", "de4968", "f7705c", "fe9f6d", "fecf92", "fcfdbf"],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
  coolwarm: ["3b4cc0", "6688ee", "88abfd", "aac7fd", "dddddd", "f5c4ac", "f4987a", "dd5f4b", "b40426"],
};

/** Colours of categories that differ in every common kind of vision. */
const CATEGORIES = ["4e9fd8", "f28e2b", "59c16a", "e8606a", "b07aa1", "edc948", "76d7c4", "ff9da7", "c49c6f", "9aa5b1"];

export const MAP_NAMES = Object.keys(MAPS);
export const MISSING = "#8a8f98";

const parse = (hex: string): number[] => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

export function categoryColor(at: number): string {
  return `#${CATEGORIES[at % CATEGORIES.length]!}`;
}

export function gradient(name: string): string {
  return `linear-gradient(to right, ${(MAPS[name] ?? MAPS.viridis!).map((hex) => `#${hex}`).join(", ")})`;
}

/** Returns 256 opaque colours: a map, or categories in turn. */
export function texels(name: string): Uint8Array {
  const out = new Uint8Array(256 * 4);
  const stops = (MAPS[name] ?? CATEGORIES).map(parse);
  for (let i = 0; i < 256; i++) {
    let color: number[];
    if (MAPS[name]) {
      const at = (i / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      color = stops[low]!.map((value, k) => value + (stops[low + 1]![k]! - value) * (at - low));
    } else {
      color = stops[i % stops.length]!;
    }
    out.set([...color.map(Math.round), 255], i * 4);
  }
  return out;
}
