import { Camera } from "./camera.ts";
import { control } from "./controls.ts";
import { byId, bytes, count, make, short } from "./dom.ts";
import { FilterLine } from "./filter.ts";
import { objectOf } from "./geometry.ts";
import { Layer } from "./layer.ts";
import type { Volume } from "./nifti.ts";
import { center, clamp, length, subtract, transform, union, type Box, type Vec3 } from "./math.ts";
import { axisLines, drawAxes, drawScale, makeCube, padded } from "./overlay.ts";
import { buildLegend, buildPanel, type Actions } from "./panel.ts";
import { outline } from "./region.ts";
import { Renderer, type Drawing, type Frame } from "./renderer.ts";
import { csv, download, PER_MILLIMETER, ply, trk } from "./save.ts";
import { isPaths, question } from "./selection.ts";
import { VolumeSlices } from "./slices.ts";
import { fromFragment, newLayerState, newVolumeState, toFragment, type State } from "./state.ts";
import type { Store } from "./store.ts";

const KEYS: [string, string][] = [
  ["arrows", "turn"], ["Shift + arrows", "move"], ["+ −", "zoom"], ["0", "fit all"], ["x y z", "look along an axis; with Shift from the other side"],
  ["f", "filter"], ["p", "panel"], ["i", "isolate the selected object, or show all"], ["Escape", "select nothing"],
  ["[ ]", "move the slab"], ["a", "axes"], ["d", "dark or light"], ["s", "screenshot"], ["l", "copy the link"], ["?", "these keys"],
];
const MOST_VERTICES = 6e6;
/** Colours of the outlines of regions. */
const INKS = { passes: [0.25, 0.68, 0.42], avoids: [0.86, 0.3, 0.28], "ends in": [0.85, 0.63, 0.16] } as const;
const THEMES = { dark: { back: [0.052, 0.063, 0.082], ink: [0.35, 0.4, 0.47] }, light: { back: [0.957, 0.961, 0.969], ink: [0.66, 0.69, 0.74] } } as const;

/** The page: layers, the camera, and what connects them to the controls. */
export class App {
  readonly layers: Layer[] = [];
  volume: VolumeSlices | undefined;
  readonly camera = new Camera();
  readonly state: State;
  private readonly renderer: Renderer;
  private readonly filter: FilterLine;
  private origin: Vec3 = [0, 0, 0];
  /** Names and units of the axes, which the first layer or volume decides. */
  private axes: { names: string[]; units: (string | undefined)[] } | undefined;
  private turnCube: ((camera: Camera) => void) | undefined;
  private isScheduled = false;
  private isMoving = false;
  private settle: number | undefined;
  private budget: number;
  private frameTime = 0;
  private frames = 0;
  private drawn = 0;
  private active = 0;

  constructor(private readonly reportsTo: URL | undefined) {
    const canvas = byId<HTMLCanvasElement>("scene");
    this.renderer = new Renderer(canvas);
    this.budget = this.renderer.isSoftware ? 400_000 : 3_000_000;
    this.state = fromFragment(location.hash);
    this.state.theme ??= matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
    this.theme(this.state.theme);
    this.filter = new FilterLine((where) => {
      const layer = this.layers[this.active];
      if (layer && layer.state.where !== where) {
        layer.state.where = where;
        void layer.ask();
      }
    });
    control(canvas, this.camera, {
      moved: () => this.moved(),
      clicked: (x, y) => this.click(x, y),
      grab: (x, y) => this.grab(x, y),
      key: (event) => this.key(event),
    });
    new ResizeObserver(() => this.redraw()).observe(canvas);
    canvas.addEventListener("webglcontextlost", () => this.fail(new Error("the graphics card gave up this page; reload it")));
    byId("menu").addEventListener("click", () => this.toggle());
    byId("help").append(
      make("h2", { id: "help-title" }, "Keys"),
      make("table", {}, ...KEYS.map(([key, what]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, what)))),
      make("form", { method: "dialog" }, make("button", {}, "Close")),
    );
  }

  /** Adds a store as a layer. */
  async add(store: Store): Promise<void> {
    const description = await store.describe();
    const state = this.state.layers[this.layers.length] ?? newLayerState();
    this.state.layers[this.layers.length] = state;
    const corner = (values: number[]) => [0, 1, 2].map((axis) => values[axis] ?? 0) as Vec3;
    const begin = this.begin({ low: corner(description.low), high: corner(description.high) }, description.axes, description.units);
    const layer = new Layer(store, description, state, this.renderer.gl, this.origin, () => this.changed());
    this.layers.push(layer);
    begin?.();
    byId("filter").hidden = false;
    document.title = `${this.layers.map((each) => each.description.name).join(", ")} – zvf viewer`;
    this.filter.columns = [...layer.columns(), ...description.axes];
    this.filter.set(state.where);
    await layer.ask();
    buildPanel(this, this.actions);
    this.showObject();
  }

  /** Places the origin in the middle of what is shown first. Returns what shows it, once it is there. */
  private begin(box: Box, names: string[], units: (string | undefined)[]): (() => void) | undefined {
    if (this.axes) return undefined;
    this.origin = center(box);
    this.axes = { names, units };
    return () => {
      const { camera } = this.state;
      this.fit();
      if (camera) {
        this.camera.target = subtract(camera.target, this.origin);
        Object.assign(this.camera, { distance: camera.distance, yaw: camera.yaw, pitch: camera.pitch });
      }
      this.turnCube = makeCube(names, (yaw, pitch) => this.turn(yaw, pitch));
      for (const id of ["panel", "cube", "scale"]) byId(id).hidden = false;
      if (innerWidth <= 640) this.toggle();
      byId("welcome").hidden = true;
    };
  }

  /** Shows slices of a volume, in the place of an earlier one. */
  addVolume(volume: Volume): void {
    // The units of a scene without any are those of the volume.
    const perUnit = this.axes ? (PER_MILLIMETER[this.axes.units[0] ?? ""] ?? volume.millimeters) : 1;
    const state = this.volume ? newVolumeState() : (this.state.volume ?? newVolumeState());
    const slices = new VolumeSlices(this.renderer.gl, volume, perUnit, state);
    this.volume?.free();
    this.state.volume = state;
    const begin = this.begin(slices.box, ["x", "y", "z"], ["millimeter", "millimeter", "millimeter"]);
    this.volume = slices;
    begin?.();
    this.camera.extent = length(subtract(this.box().high, this.box().low));
    if (!this.layers.length) document.title = `${slices.name} – zvf viewer`;
    buildPanel(this, this.actions);
    this.changed();
  }

  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const close = make("button", { type: "button", click: () => { byId("error").hidden = true; } }, "Close");
    byId("error").replaceChildren(make("span", {}, message.charAt(0).toUpperCase() + message.slice(1)), close);
    byId("error").hidden = false;
  }

  /** Whether nothing is being read. */
  get isIdle(): boolean {
    return !this.isScheduled && !this.isMoving && !!this.axes && this.layers.every((layer) => !layer.isLoading);
  }

  private readonly actions: Actions = {
    ask: (layer) => void layer.ask().then(() => buildPanel(this, this.actions)),
    redraw: () => this.changed(),
    save: (layer, format) => void this.save(layer, format).catch((error: unknown) => this.fail(error)),
    screenshot: () => this.screenshot(),
    copyLink: () => void this.copyLink().catch((error: unknown) => this.fail(error)),
    theme: () => this.theme(this.state.theme === "dark" ? "light" : "dark"),
    fit: () => {
      this.fit();
      this.moved();
    },
    target: () => this.camera.target.map((value, axis) => Number((value + this.origin[axis]!).toPrecision(6))) as Vec3,
  };

  private box(): Box {
    const boxes = this.layers.map((layer) => layer.box());
    if (this.volume) boxes.push(this.volume.box);
    const all = boxes.slice(1).reduce(union, boxes[0] ?? { low: [0, 0, 0], high: [1, 1, 1] });
    return { low: subtract(all.low, this.origin), high: subtract(all.high, this.origin) };
  }

  private fit(): void {
    const canvas = byId("scene");
    this.camera.fit(this.box(), canvas.clientWidth / Math.max(canvas.clientHeight, 1));
  }

  private turn(yaw: number, pitch: number): void {
    this.camera.yaw = yaw;
    this.camera.pitch = pitch;
    this.moved();
  }

  private moved(): void {
    this.isMoving = true;
    clearTimeout(this.settle);
    this.settle = window.setTimeout(() => {
      this.isMoving = false;
      this.remember();
      this.redraw();
    }, 250);
    this.redraw();
  }

  private changed(): void {
    buildLegend(this.layers, this.volume);
    const failed = this.layers.find((layer) => layer.error);
    if (failed) {
      this.fail(failed.error);
      failed.error = undefined;
    }
    const layer = this.layers[this.active];
    if (layer) {
      const { counts } = layer;
      const kind = isPaths(layer.description) ? "paths" : "objects";
      const objects = counts?.objects ?? counts?.parts;
      byId("counts").textContent = counts
        ? `${count(counts.vertices)} vertices${objects ? `, ${count(objects)} ${kind}` : ""}` : layer.isBusy ? "…" : "";
    }
    this.remember();
    this.report();
    this.redraw();
  }

  /** Tells the server of the page what is shown, if `&report` ends its link. */
  private report(): void {
    if (!this.reportsTo || this.layers.some((layer) => !layer.query)) return;
    const body = JSON.stringify(this.layers.map(({ description, query, state }) => ({ name: description.name, query, object: state.object ?? null })));
    if (body === this.reported) return;
    this.reported = body;
    fetch(this.reportsTo, { method: "PUT", body }).catch((error: unknown) => this.fail(error));
  }
  private reported = "";

  private remember(): void {
    if (!this.axes) return;
    const { target, distance, yaw, pitch } = this.camera;
    this.state.camera = { target: target.map((value, axis) => value + this.origin[axis]!) as Vec3, distance, yaw, pitch };
    try {
      history.replaceState(null, "", toFragment(this.state));
    } catch {
      // Pages of files and busy browsers refuse this; the link of the button still works.
    }
  }

  private redraw(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.draw();
    });
  }

  private frame(): Frame {
    const { state } = this;
    const drawings: Drawing[] = this.layers.flatMap((layer) => layer.drawings(layer.look(layer.thickness())));
    const regions = this.layers.flatMap((layer) => (layer.state.isVisible ? layer.state.regions : []));
    const lines: Frame["lines"] = regions.map((region) => ({ ends: outline(region, this.origin), ink: INKS[region.role] }));
    const theme = THEMES[state.theme ?? "dark"];
    let edges: ReturnType<typeof axisLines>["edges"] = [];
    if (state.axes && this.axes) {
      const made = axisLines(padded(this.box()), this.camera);
      edges = made.edges;
      lines.push({ ends: made.lines, ink: theme.ink });
    }
    drawAxes(edges, this.camera, this.origin, this.axes?.names ?? [], this.axes?.units ?? []);
    const slab = state.slab && {
      normal: [0, 1, 2].map((axis) => (axis === state.slab!.axis ? 1 : 0)) as Vec3,
      at: state.slab.at - this.origin[state.slab.axis]!, width: state.slab.width,
    };
    return {
      drawings, background: [...theme.back], slab, lines, slices: this.volume?.slices(this.origin),
      samples: this.isMoving && this.frameTime > 30 ? 0 : 4,
    };
  }

  private draw(): void {
    const { renderer, camera } = this;
    const { canvas } = renderer;
    const density = Math.min(devicePixelRatio, 2) * (this.isMoving && this.frameTime > 80 ? 0.5 : 1);
    const [width, height] = [Math.max(1, Math.round(canvas.clientWidth * density)), Math.max(1, Math.round(canvas.clientHeight * density))];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const { slab } = this.state;
    const isInSlab = (box: Box): boolean => !slab
      || (box.low[slab.axis] <= slab.at + slab.width / 2 && box.high[slab.axis] >= slab.at - slab.width / 2);
    const share = this.budget / Math.max(this.layers.filter((layer) => layer.state.isVisible).length, 1);
    this.drawn = this.layers.map((layer) => layer.refine(camera, [width, height], share, isInSlab)).reduce((a, b) => a + b, 0);
    const start = performance.now();
    renderer.render(this.frame(), camera);
    if (this.isMoving) {
      // A read waits for the picture, so that the time is that of the whole frame.
      renderer.gl.readPixels(0, 0, 1, 1, renderer.gl.RGBA, renderer.gl.UNSIGNED_BYTE, new Uint8Array(4));
      const time = performance.now() - start;
      this.frameTime = this.frameTime ? this.frameTime * 0.8 + time * 0.2 : time;
      if (this.frameTime > 40) this.budget = Math.max(100_000, this.budget * 0.95);
      else if (this.frameTime < 15) this.budget = Math.min(MOST_VERTICES, this.budget * 1.02);
    }
    this.frames++;
    this.turnCube?.(camera);
    if (this.axes) drawScale(camera, this.axes.units[0]);
    this.status();
  }

  private status(): void {
    const traffic = this.layers.map((layer) => layer.store.traffic());
    const sum = (name: "requests" | "bytes") => traffic.reduce((total, each) => total + each[name], 0);
    const isLoading = this.layers.some((layer) => layer.isLoading);
    const shared = this.layers.filter((layer) => layer.state.share < 1 && layer.base).map((layer) => `${count(layer.shared())} objects by share`);
    byId("status").textContent = this.layers.length
      ? [
        `${count(sum("requests"))} requests`, bytes(sum("bytes")), `${count(this.drawn)} vertices drawn`, ...shared,
        this.frameTime ? `${this.frameTime.toFixed(0)} ms a frame${this.renderer.isSoftware ? " (in software)" : ""}` : "",
        isLoading ? "reading…" : "",
      ].filter(Boolean).join(" · ")
      : "No store is open.";
  }

  private click(x: number, y: number): void {
    const { canvas } = this.renderer;
    this.isMoving = false;
    this.draw();
    const found = this.renderer.pick((x / canvas.clientWidth) * canvas.width, (y / canvas.clientHeight) * canvas.height, this.frame(), this.camera);
    for (const layer of this.layers) {
      const isIn = found && layer.drawings(found.drawing.look).some((drawing) => drawing.geometry === found.drawing.geometry);
      if (isIn) {
        const id = objectOf(found.drawing.geometry.result, found.row);
        if (id === undefined) delete layer.state.object;
        else layer.state.object = id;
        this.showObject(layer, found.drawing.geometry.result, found.row);
      } else if (!layer.state.isIsolated) delete layer.state.object;
    }
    if (!found) byId("object").hidden = true;
    this.changed();
  }

  /** Shows a row, or the object that the state names. */
  private showObject(of?: Layer, result = of?.base?.result, row?: number): void {
    const layer = of ?? this.layers.find((each) => each.state.object !== undefined);
    result ??= layer?.base?.result;
    const pane = byId("object");
    pane.hidden = !layer || !result;
    if (!layer || !result) return;
    const id = layer.state.object;
    const pairs: [string, string][] = [];
    const at = id === undefined ? -1 : Array.from(result.objects, Number).indexOf(id);
    const show = (value: unknown) => (typeof value === "number" ? short(value) : value === null || value === undefined ? "–" : String(value));
    if (at >= 0) for (const [name, column] of Object.entries(result.object)) if (column.length === result.objects.length) pairs.push([`object.${name}`, show(column[at])]);
    if (id !== undefined && layer.description.groups.length && !layer.members) {
      void layer.readMembers().then(() => layer.state.object === id && this.showObject(layer, result, row));
    }
    const groups = layer.description.groups.filter((group) => id !== undefined && Array.from(layer.members?.[group.id] ?? [], Number).includes(id));
    if (groups.length) pairs.push(["groups", groups.map((group) => group.name ?? group.id).join(", ")]);
    if (row !== undefined) {
      for (let axis = 0; axis < result.dimensions; axis++) pairs.push([layer.description.axes[axis] ?? `${axis}`, short(result.positions[row * result.dimensions + axis]!)]);
      const rows = result.positions.length / result.dimensions;
      for (const [name, column] of Object.entries(result.vertex)) if (column.length === rows) pairs.push([`vertex.${name}`, show(column[row])]);
    }
    pane.replaceChildren(
      make("h2", {}, id === undefined ? `Point of ${layer.description.name}` : `Object ${id}`),
      make("dl", {}, ...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
      ...(id === undefined ? [] : [make("button", { type: "button", click: () => this.isolate() }, layer.state.isIsolated ? "Show all" : "Isolate")]),
    );
  }

  private isolate(): void {
    const layer = this.layers.find((each) => each.state.object !== undefined);
    if (!layer) return;
    layer.state.isIsolated = !layer.state.isIsolated;
    void layer.ask().then(() => this.showObject(layer));
  }

  private grab(x: number, y: number): ((by: Vec3) => void) | undefined {
    const canvas = byId("scene");
    const matrix = this.camera.matrix(canvas.clientWidth / canvas.clientHeight);
    for (const [layer, region] of this.layers.flatMap((each) => each.state.regions.map((own) => [each, own] as const))) {
      const [px, py, , w] = transform(matrix, subtract(region.center, this.origin));
      const far = Math.hypot((px / w / 2 + 0.5) * canvas.clientWidth - x, (0.5 - py / w / 2) * canvas.clientHeight - y);
      if (w <= 0 || far > 24) continue;
      let timer: number | undefined;
      return (by) => {
        region.center = region.center.map((value, axis) => value + by[axis]!) as Vec3;
        clearTimeout(timer);
        timer = window.setTimeout(() => this.actions.ask(layer), 300);
      };
    }
    return undefined;
  }

  private key(event: KeyboardEvent): boolean {
    const look: Record<string, [number, number]> = { x: [0, 0], X: [180, 0], y: [90, 0], Y: [270, 0], z: [270, 90], Z: [270, -90] };
    const view = look[event.key];
    const { slab } = this.state;
    if (view) this.turn(...view);
    else if (event.key === "0") this.actions.fit();
    else if (event.key === "f") byId("where").focus();
    else if (event.key === "p") this.toggle();
    else if (event.key === "i") this.isolate();
    else if (event.key === "d") this.actions.theme();
    else if (event.key === "s") this.screenshot();
    else if (event.key === "l") this.actions.copyLink();
    else if (event.key === "?") byId<HTMLDialogElement>("help").showModal();
    else if (event.key === "a") {
      this.state.axes = !this.state.axes;
      this.changed();
    } else if (event.key === "Escape") {
      for (const layer of this.layers) if (!layer.state.isIsolated) delete layer.state.object;
      byId("object").hidden = true;
      this.changed();
    } else if (slab && (event.key === "[" || event.key === "]")) {
      const box = this.box();
      const [low, high] = [box.low[slab.axis] + this.origin[slab.axis], box.high[slab.axis] + this.origin[slab.axis]];
      slab.at = clamp(slab.at + ((event.key === "]" ? 1 : -1) * (high - low)) / 100, low, high);
      this.changed();
    } else return false;
    return true;
  }

  private toggle(): void {
    const panel = byId("panel");
    panel.hidden = !panel.hidden;
    byId("menu").setAttribute("aria-expanded", String(!panel.hidden));
  }

  private theme(name: "dark" | "light"): void {
    this.state.theme = name;
    document.documentElement.dataset.theme = name;
    this.changed();
  }

  private async save(layer: Layer, format: string): Promise<void> {
    const { signal } = new AbortController();
    const result = await layer.store.query({ ...(await question(layer, signal)), level: 0 }, signal);
    const parts = format === "csv" ? csv(result, layer.description) : format === "ply" ? ply(result) : trk(result, layer.description);
    download(`${layer.description.name}.${format}`, parts, format === "csv" ? "text/csv" : "application/octet-stream");
  }

  private screenshot(): void {
    this.isMoving = false;
    this.draw();
    this.renderer.canvas.toBlob((blob) => {
      if (blob) download("zvf.png", [blob], "image/png");
    });
  }

  private async copyLink(): Promise<void> {
    this.remember();
    const link = location.href.split("#")[0]! + toFragment(this.state);
    await navigator.clipboard.writeText(link);
    byId("status").textContent = "The link is copied.";
  }
}
