import { byId, count, field, make, short, svg } from "./dom.ts";
import type { Layer } from "./layer.ts";
import { categoryColor, gradient, MAP_NAMES } from "./palette.ts";
import { isPaths } from "./selection.ts";
import type { VolumeSlices } from "./slices.ts";
import { ROLES, type Region, type State } from "./state.ts";
import { unitName } from "./overlay.ts";
import type { Vec3 } from "./math.ts";

export interface Actions {
  /** Asks the store of a layer again. */
  ask(layer: Layer): void;
  redraw(): void;
  save(layer: Layer, format: string): void;
  screenshot(): void;
  copyLink(): void;
  theme(): void;
  fit(): void;
  /** A point in the middle of the view. */
  target(): Vec3;
}

const SHOWN_GROUPS = 400;

interface Shown {
  readonly layers: Layer[];
  readonly volume: VolumeSlices | undefined;
  readonly state: State;
}

/** The controls of all layers. It is built again when layers or what they have change. */
export function buildPanel(shown: Shown, actions: Actions): void {
  const { layers, volume } = shown;
  const wasOpen = new Map([...byId("panel").querySelectorAll("details")].map((details) => [details.getAttribute("data-name"), details.open]));
  const section = (name: string, isOpen: boolean, ...children: Node[]) =>
    make("details", { "data-name": name, open: wasOpen.get(name) ?? isOpen }, make("summary", {}, name.split("·").pop()!), ...children);
  byId("panel").replaceChildren(
    ...layers.flatMap((layer, at) => layerSections(layer, `${at}·`, section, actions)),
    ...(volume ? volumeSections(volume, section, actions) : []),
    section("Scene", false, ...scene(shown, actions)),
  );
}

/** The slices of a volume, and its window above the histogram of what is not background. */
function volumeSections(volume: VolumeSlices, section: Section, actions: Actions): HTMLElement[] {
  const { state, box, range: [low, high], counts } = volume;
  const planes = ["x", "y", "z"].map((name, axis) => {
    const [from, to] = [box.low[axis]!, box.high[axis]!];
    const place = slider(from, to, (to - from) / 400, state.at![axis]!, (value) => {
      state.at![axis] = value;
      actions.redraw();
    }, short);
    place.setAttribute("aria-label", `Place of the slice across ${name}`);
    return make("div", { class: "field" }, check(name, state.shown[axis]!, (isOn) => {
      state.shown[axis] = isOn;
      actions.redraw();
    }), place);
  });
  const window = state.window!;
  const text = make("small");
  const show = (): void => {
    text.textContent = `${short(window[0])} to ${short(window[1])}`;
  };
  const step = (high - low) / 500;
  const end = (name: string, at: 0 | 1): HTMLInputElement => {
    const input = slider(low, high, step, window[at], (value) => {
      window[at] = at === 0 ? Math.min(value, window[1] - step) : Math.max(value, window[0] + step);
      show();
      actions.redraw();
    }, short);
    input.setAttribute("aria-label", `Value that is ${name}`);
    return input;
  };
  show();
  return [
    make("h2", {}, check(volume.name, state.isVisible, (isOn) => {
      state.isVisible = isOn;
      actions.redraw();
    })),
    section("volume·Slices", true, ...planes),
    section("volume·Window", true, make("p", { class: "row" }, "Black to white", text), ...(counts ? [bars(counts.bins)] : []),
      make("div", { class: "two" }, end("black", 0), end("white", 1))),
  ];
}

function bars(bins: number[]): Node {
  const most = Math.max(...bins, 1);
  return svg("svg", { class: "histogram", viewBox: `0 0 ${bins.length} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...bins.map((n, at) => svg("rect", { x: at, y: 1 - n / most, width: 0.9, height: n / most }))) as unknown as Node;
}

type Section = (name: string, isOpen: boolean, ...children: Node[]) => HTMLElement;

function check(name: string, isOn: boolean, changed: (isOn: boolean) => void, note = ""): HTMLElement {
  const box = make("input", { type: "checkbox", checked: isOn, change: () => changed(box.checked) });
  return make("label", { class: "check" }, box, name, ...(note ? [make("small", {}, note)] : []));
}

function slider(low: number, high: number, step: number, value: number, changed: (value: number) => void, show: (value: number) => string): HTMLInputElement {
  const input = make("input", { type: "range", min: low, max: high, step, "aria-valuetext": show(value) });
  input.value = String(value);
  input.addEventListener("input", () => {
    input.setAttribute("aria-valuetext", show(Number(input.value)));
    changed(Number(input.value));
  });
  return input;
}

function choice(options: string[], value: string, changed: (value: string) => void): HTMLSelectElement {
  const select = make("select", { change: () => changed(select.value) }, ...options.map((name) => make("option", { value: name }, name)));
  select.value = value;
  return select;
}

function layerSections(layer: Layer, prefix: string, section: Section, actions: Actions): HTMLElement[] {
  const { state, description } = layer;
  const isMap = layer.coloring() === 0;
  const look: Node[] = [
    field("Colour", choice(layer.colors(), state.color, (value) => {
      state.color = value;
      delete state.range;
      layer.recolor();
    })),
  ];
  if (isMap) look.push(field("Map", choice(MAP_NAMES, state.map, (value) => {
    state.map = value;
    actions.redraw();
  })));
  if (layer.shape !== "mesh") {
    look.push(field("Width", slider(-1, 1, 0.05, Math.log10(state.width), (value) => {
      state.width = 10 ** value;
      actions.redraw();
    }, (value) => `${(10 ** value).toFixed(1)} times`)));
  }
  if (layer.shape !== "mesh" && (layer.base?.result.objects.length ?? 0) > 20) {
    look.push(field("Share", slider(0, 1, 0.01, state.share, (value) => {
      state.share = value;
      actions.redraw();
    }, (value) => `${Math.round(value * 100)} % of objects`)));
  }
  const sections = [
    make("h2", {}, check(description.name, state.isVisible, (isOn) => {
      state.isVisible = isOn;
      actions.redraw();
    })),
    section(`${prefix}Look`, true, ...look),
  ];
  if (description.groups.length) {
    const boxes = description.groups.slice(0, SHOWN_GROUPS).map((group) => check(
      group.name ?? `group ${group.id}`, state.groups.includes(group.id),
      (isOn) => {
        state.groups = isOn ? [...state.groups, group.id] : state.groups.filter((id) => id !== group.id);
        actions.ask(layer);
      },
      group.size === undefined ? "" : count(group.size),
    ));
    if (description.groups.length > SHOWN_GROUPS) boxes.push(make("p", {}, `The first ${SHOWN_GROUPS} of ${count(description.groups.length)} groups.`));
    sections.push(section(`${prefix}Groups`, false, ...boxes));
  }
  const ranges = description.attributes
    .filter((a) => (a.scope === "vertex" || a.scope === "object") && (a.channels ?? 1) === 1 && !/text|bool/.test(a.type))
    .slice(0, 12).map((a) => rangeOf(layer, `${a.scope}.${a.name}`, a.unit, actions)).filter((node) => node !== undefined);
  if (ranges.length) sections.push(section(`${prefix}Ranges`, false, ...ranges));
  sections.push(section(`${prefix}Region`, false, ...regionOf(layer, actions)));
  const formats = isPaths(description) ? ["csv", "ply", "trk"] : ["csv", "ply"];
  sections.push(section(`${prefix}Save the selection`, false, make("div", { class: "row" },
    ...formats.map((format) => make("button", { type: "button", click: () => actions.save(layer, format) }, `.${format}`)))));
  return sections;
}

/** Two limits of an attribute above the histogram of what the first picture has. */
function rangeOf(layer: Layer, name: string, unit: string | null | undefined, actions: Actions): HTMLElement | undefined {
  const known = layer.histogram(name);
  if (!known) return undefined;
  const { low, high, bins } = known;
  const own = layer.state.ranges[name] ?? [low, high];
  const label = make("p", { class: "row" }, `${name}${unit ? ` (${unitName(unit)})` : ""}`);
  const text = make("small");
  label.append(text);
  const show = (): void => {
    text.textContent = `${short(own[0])} to ${short(own[1])}`;
  };
  let timer: number | undefined;
  const set = (end: 0 | 1, value: number): void => {
    own[end] = end === 0 ? Math.min(value, own[1]) : Math.max(value, own[0]);
    show();
    if (own[0] <= low && own[1] >= high) delete layer.state.ranges[name];
    else layer.state.ranges[name] = [own[0], own[1]];
    clearTimeout(timer);
    timer = window.setTimeout(() => actions.ask(layer), 400);
  };
  show();
  const step = (high - low) / 200 || 1;
  const lower = slider(low, high, step, own[0], (value) => set(0, value), short);
  const upper = slider(low, high, step, own[1], (value) => set(1, value), short);
  lower.setAttribute("aria-label", `Least ${name}`);
  upper.setAttribute("aria-label", `Greatest ${name}`);
  return make("div", {}, label, bars(bins), make("div", { class: "two" }, lower, upper));
}

function regionOf(layer: Layer, actions: Actions): Node[] {
  const { state } = layer;
  const canCombine = isPaths(layer.description);
  const box = layer.box();
  const sizes = box.high.map((value, axis) => (value - box.low[axis]!) / 4) as Vec3;
  const make2 = (shape: Region["shape"]) => make("button", {
    type: "button",
    click: () => {
      const place = { role: "passes", center: actions.target() } as const;
      const region: Region = shape === "box" ? { ...place, shape, size: [...sizes] } : { ...place, shape, radius: Math.max(...sizes) / 2 };
      if (canCombine) state.regions.push(region);
      else state.regions = [region];
      actions.ask(layer);
    },
  }, shape === "box" ? "Box here" : "Sphere here");
  const number = (name: string, value: number, changed: (value: number) => void) => {
    const input = make("input", { type: "number", step: "any", "aria-label": name, value: Number(value.toPrecision(5)), change: () => {
      if (Number.isFinite(input.valueAsNumber)) {
        changed(input.valueAsNumber);
        actions.ask(layer);
      }
    } });
    return input;
  };
  const { axes } = layer.description;
  const three = (title: string, values: Vec3) => make("div", { class: "field" }, make("span", {}, title), make("div", { class: "three" },
    ...values.map((value, axis) => number(`${title} ${axes[axis] ?? axis}`, value, (to) => { values[axis] = to; }))));
  const shown = state.regions.map((region, at) => make("fieldset", {}, make("legend", {}, `Region ${at + 1}`),
    ...(canCombine ? [field("A path", choice([...ROLES], region.role, (role) => {
      region.role = role as Region["role"];
      actions.ask(layer);
    }))] : []),
    three("Centre", region.center),
    region.shape === "box" ? three("Size", region.size)
      : field("Radius", number("Radius", region.radius, (to) => { region.radius = Math.max(to, 0); })),
    make("button", { type: "button", click: () => {
      state.regions.splice(at, 1);
      actions.ask(layer);
    } }, "Remove")));
  const note = shown.length ? [make("p", {}, "Drag the middle of a region in the scene to move it.")] : [];
  return [make("div", { class: "row" }, make2("box"), make2("sphere")), ...shown, ...note];
}

function scene(shown: Shown, actions: Actions): Node[] {
  const { layers, state, volume } = shown;
  const box = layers[0]?.box() ?? volume?.box ?? { low: [0, 0, 0], high: [1, 1, 1] };
  const axes = layers[0]?.description.axes ?? ["x", "y", "z"];
  const nodes: Node[] = [
    check("Axes", state.axes, (isOn) => {
      state.axes = isOn;
      actions.redraw();
    }),
    field("Slab", choice(["none", ...axes.slice(0, 3)], state.slab ? axes[state.slab.axis]! : "none", (value) => {
      const axis = axes.indexOf(value) as 0 | 1 | 2;
      if (value === "none") delete state.slab;
      else state.slab = { axis, at: (box.low[axis]! + box.high[axis]!) / 2, width: (box.high[axis]! - box.low[axis]!) / 12 };
      buildPanel(shown, actions);
      actions.redraw();
    })),
  ];
  const slab = state.slab;
  if (slab) {
    const [low, high] = [box.low[slab.axis]!, box.high[slab.axis]!];
    nodes.push(
      field("Position", slider(low, high, (high - low) / 200 || 1, slab.at, (value) => { slab.at = value; actions.redraw(); }, short)),
      field("Thickness", slider((high - low) / 200, high - low, (high - low) / 200 || 1, slab.width, (value) => { slab.width = value; actions.redraw(); }, short)),
    );
  }
  const button = (name: string, click: () => void) => make("button", { type: "button", click }, name);
  nodes.push(make("div", { class: "row" }, button("Fit", actions.fit), button("Dark or light", actions.theme),
    button("Screenshot", actions.screenshot), button("Copy link", actions.copyLink)));
  return nodes;
}

/** The colours of the visible layers. */
export function buildLegend(layers: Layer[], volume: VolumeSlices | undefined): void {
  const parts: Node[] = [];
  for (const layer of layers) {
    if (!layer.state.isVisible || ["plain", "object"].includes(layer.state.color) || !layer.base) continue;
    const { color, map } = layer.state;
    const kind = layer.coloring();
    const unit = layer.description.attributes.find((a) => `${a.scope}.${a.name}` === color)?.unit;
    parts.push(make("h2", {}, color + (unit ? ` (${unitName(unit)})` : "")));
    if (kind === 0) {
      const bar = make("div", { class: "bar" });
      bar.style.background = gradient(map);
      const [low, high] = layer.state.range ?? layer.spread;
      parts.push(bar, make("div", { class: "ends" }, make("span", {}, short(low)), make("span", {}, short(high))));
    } else if (kind === 1) {
      parts.push(list(layer.description.axes.slice(0, 3), (at) => ["#f02020", "#20f020", "#2020f0"][at]!));
    } else if (layer.categories.length) {
      parts.push(list(layer.categories.slice(0, 40), categoryColor));
    }
  }
  if (volume?.state.isVisible) {
    const bar = make("div", { class: "bar" });
    bar.style.background = "linear-gradient(to right, #000, #fff)";
    const ends = volume.state.window!.map((value) => make("span", {}, short(value)));
    parts.push(make("h2", {}, volume.name), bar, make("div", { class: "ends" }, ...ends));
  }
  byId("legend").replaceChildren(...parts);
  byId("legend").hidden = !parts.length;
}

function list(names: string[], color: (at: number) => string): HTMLElement {
  return make("ul", {}, ...names.map((name, at) => {
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = color(at);
    return make("li", {}, swatch, name);
  }));
}
