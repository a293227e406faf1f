import { byId, make } from "./dom.ts";

/** The filter line: a combobox that completes the names of columns and words of the language. */
export class FilterLine {
  private readonly input = byId<HTMLInputElement>("where");
  private readonly list = byId("names");
  private at = -1;
  private timer: number | undefined;
  columns: string[] = [];

  constructor(private readonly changed: (where: string) => void) {
    const { input, list } = this;
    input.addEventListener("input", () => {
      this.suggest();
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.changed(input.value), 600);
    });
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const item = (event.target as Element).closest("li");
      if (item) this.choose(item.textContent!);
    });
    byId("filter").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(this.timer);
      this.close();
      this.changed(input.value);
    });
  }

  set(where: string): void {
    if (document.activeElement !== this.input) this.input.value = where;
  }

  fault(message: string | undefined): void {
    this.input.setAttribute("aria-invalid", String(!!message));
    this.input.title = message ?? "";
  }

  /** The name before the cursor that is being written. */
  private word(): string {
    const before = this.input.value.slice(0, this.input.selectionStart ?? undefined);
    return /[\p{L}\p{N}_.]*$/u.exec(before)![0];
  }

  private suggest(): void {
    const word = this.word().toLowerCase();
    const names = word
      ? [...this.columns, "between", "and", "or", "not", "in", "is null"].filter((name) => {
        const low = name.toLowerCase();
        return low !== word && (low.startsWith(word) || low.split(".").some((part) => part.startsWith(word)));
      }).slice(0, 12)
      : [];
    this.list.replaceChildren(...names.map((name, at) => make("li", { role: "option", id: `name-${at}`, "aria-selected": "false" }, name)));
    this.list.hidden = !names.length;
    this.input.setAttribute("aria-expanded", String(!!names.length));
    this.move(-1);
  }

  private move(to: number): void {
    this.at = to;
    [...this.list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === to)));
    if (to >= 0) this.input.setAttribute("aria-activedescendant", `name-${to}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  private key(event: KeyboardEvent): void {
    const size = this.list.hidden ? 0 : this.list.children.length;
    if (event.key === "Escape") {
      if (size) this.close();
      else this.input.blur();
    } else if (size && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      this.move((this.at + (event.key === "ArrowDown" ? 1 : -1) + size) % size);
    } else if (size && (event.key === "Tab" || event.key === "Enter") && this.at >= 0) {
      this.choose(this.list.children[this.at]!.textContent!);
    } else {
      return;
    }
    event.preventDefault();
  }

  private choose(name: string): void {
    const { input } = this;
    const end = input.selectionStart ?? input.value.length;
    input.setRangeText(`${name} `, end - this.word().length, end, "end");
    this.close();
    input.focus();
  }

  private close(): void {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.move(-1);
  }
}
