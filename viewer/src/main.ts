import { serve } from "zvf";
import { App } from "./app.ts";
import { byId } from "./dom.ts";
import { checkedAddress, embedded, openAddress, openEntry, openFile, openFolder, runWorkersFrom } from "./engine.ts";
import { fetchNifti, isNifti, readNifti, type Volume } from "./nifti.ts";
import type { Store } from "./store.ts";

if (typeof document === "undefined") serve();
else {
  runWorkersFrom(document.currentScript!.textContent!);
  start();
}

function start(): void {
  const words = new URLSearchParams(location.search);
  const app = new App(words.has("report") ? new URL("view/selection", location.href) : undefined);
  Object.assign(window, { viewer: app });

  async function open(opening: Promise<Store>): Promise<void> {
    try {
      await app.add(await opening);
    } catch (error) {
      app.fail(error);
    }
  }

  async function slice(reading: Promise<Volume>): Promise<void> {
    try {
      app.addVolume(await reading);
    } catch (error) {
      app.fail(error);
    }
  }

  const take = (file: File): Promise<void> => (isNifti(file.name) ? slice(readNifti(file, file.name)) : open(openFile(file)));

  /** A store in the page itself, or what its address names, or the question what to open. */
  async function openAll(): Promise<void> {
    const inside = embedded();
    const volume = words.get("volume");
    if (inside) await open(inside);
    for (const address of words.getAll("store").slice(0, 16)) await open(openAddress(address));
    if (volume) await slice((async () => fetchNifti(checkedAddress(volume)))());
    byId("welcome").hidden = app.layers.length > 0 || !!app.volume;
  }

  byId("address").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = new URL(location.href);
    url.searchParams.append("store", byId<HTMLInputElement>("url").value);
    location.assign(url);
  });
  byId("pick-file").addEventListener("click", () => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = ".zip,.nii,.gz";
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      if (file) void take(file);
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
      const entry = item.webkitGetAsEntry();
      if (entry?.isDirectory) void open(openEntry(entry as FileSystemDirectoryEntry));
      else if (entry) (entry as FileSystemFileEntry).file((file) => void take(file), (error) => app.fail(error));
    }
  });

  void openAll();
}
