import { serve } from "zvf";
import { App } from "./app.ts";
import { byId } from "./dom.ts";
import { embedded, openAddress, openDropped, openFile, openFolder, runWorkersFrom } from "./engine.ts";
import type { Store } from "./store.ts";

if (typeof document === "undefined") serve();
else {
  runWorkersFrom(document.currentScript!.textContent!);
  start();
}

function start(): void {
  const app = new App();
  Object.assign(window, { viewer: app });

  async function open(opening: Promise<Store>): Promise<void> {
    try {
      await app.add(await opening);
    } catch (error) {
      app.fail(error);
    }
  }

  /** A store in the page itself, or those that its address names, or the question which one. */
  async function openAll(): Promise<void> {
    const inside = embedded();
    const addresses = new URLSearchParams(location.search).getAll("store").slice(0, 16);
    if (inside) await open(inside);
    for (const address of addresses) await open(openAddress(address));
    byId("welcome").hidden = app.layers.length > 0;
  }

  byId("address").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = new URL(location.href);
    url.searchParams.append("store", byId<HTMLInputElement>("url").value);
    location.assign(url);
  });
  byId("pick-zip").addEventListener("click", () => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = ".zip";
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      if (file) void open(openFile(file));
    });
    input.click();
  });
  byId("pick-folder").addEventListener("click", () => {
    const input = document.createElement("input");
    input.type = "file";
    input.webkitdirectory = true;
    input.addEventListener("change", () => void open(openFolder([...(input.files ?? [])])));
    input.click();
  });
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    for (const item of event.dataTransfer?.items ?? []) {
      const opening = openDropped(item);
      if (opening) void open(opening);
    }
  });

  void openAll();
}
