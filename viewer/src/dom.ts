/** Elements, made without markup: names from stores are text. */
type Props = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props);
  element.append(...children);
  return element;
}

export function svg(tag: string, props: Props = {}, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, props);
  element.append(...children);
  return element;
}

function fill(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "value" && element instanceof HTMLInputElement) element.value = String(value);
    else if (name === "checked" && element instanceof HTMLInputElement) element.checked = true;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

let last = 0;
/** A label and its control. */
export function field(name: string, control: HTMLElement): HTMLElement {
  control.id ||= `field-${++last}`;
  return make("div", { class: "field" }, make("label", { for: control.id, title: name }, name), control);
}

export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return Number(value.toPrecision(4)).toString();
}

export const count = (value: number): string => Math.round(value).toLocaleString("en").replaceAll(",", " ");

export function bytes(value: number): string {
  return value < 1e3 ? `${value} B` : value < 1e6 ? `${(value / 1e3).toFixed(0)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}
