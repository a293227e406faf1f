/** The module, which answers calls in this thread. */

import init, { type Batches as ModuleBatches, type Engine as ModuleEngine, open as openModule } from "./zvf.js";
import { unlessPanicked } from "./panic.ts";
import { portOf } from "./port.ts";
import type { OpenOptions, Piece, Port, Source, Stats } from "./types.ts";

/** JSON, and the columns that it refers to by number. */
export interface Answer {
  json: string;
  buffers: Uint8Array<ArrayBuffer>[];
}

/** Answers calls: the module in this thread, or one in a worker. */
export interface Engine {
  call(method: string, request: string, signal?: AbortSignal): Promise<Answer>;
  batches(request: string): Promise<Batches>;
  stats(): Stats;
  free(): void;
}

export interface Batches {
  /** Returns `undefined` after the last batch. */
  next(signal?: AbortSignal): Promise<Answer | undefined>;
  free(): void;
}

/** Bytes of the answers of a server that are read at a time, if the memory budget is less. */
const MOST_HELD = 256 << 20;

let ready: Promise<unknown> | undefined;

async function bytesOfModule(): Promise<BufferSource | URL> {
  const url = new URL("./zvf_bg.wasm", import.meta.url);
  if (url.protocol !== "file:" || !("process" in globalThis)) return url;
  const { readFile } = await import("node:fs/promises");
  return new Uint8Array(await readFile(url));
}

/** Opens a store in this thread. */
export async function openHere(source: Source, options: OpenOptions): Promise<Engine> {
  const { headers, signal: _signal, module, worker: _worker, ...own } = options;
  ready ??= (module ? Promise.resolve(module) : bytesOfModule()).then((from) => init({ module_or_path: from }));
  await ready;
  const stats = { requests: 0, bytes: 0, lists: 0 };
  const port = called(portOf(source, headers, Math.max(own.memoryBudget ?? 0, MOST_HELD)), stats);
  const engine = (await unlessPanicked(() => openModule(port as never, JSON.stringify(own)))) as ModuleEngine;
  return {
    call: (method, request, signal) => unlessPanicked(() => engine.call(method, request, aborted(signal))) as Promise<Answer>,
    async batches(request) {
      const batches = (await unlessPanicked(() => engine.batches(request))) as ModuleBatches;
      return {
        next: (signal) => unlessPanicked(() => batches.next(aborted(signal))) as Promise<Answer | undefined>,
        free: () => batches.free(),
      };
    },
    stats: () => ({ ...stats }),
    free: () => engine.free(),
  };
}

/** A port in the form in which the module calls it. Equal reads at the same time are one: queries of neighbouring boxes
 * read the same chunks, which the cache has only once they are decoded. */
function called(port: Port, stats: Stats): object {
  const reads = new Map<string, { piece: Promise<Piece | null | undefined>; readers: number; controller: AbortController }>();
  return {
    name: port.name,
    get: async (key: string, start?: number, end?: number, unless?: string, signal?: AbortSignal) => {
      const range = start === undefined ? undefined : { start, ...(end !== undefined && { end }) };
      const name = JSON.stringify([key, start, end, unless]);
      let read = reads.get(name);
      if (!read) {
        const controller = new AbortController();
        const own = { piece: port.read(key, range, controller.signal, unless), readers: 0, controller };
        stats.requests++;
        reads.set(name, (read = own));
        void own.piece.catch(() => {}).then((piece) => {
          stats.bytes += piece?.bytes?.length ?? 0;
          if (reads.get(name) === own) reads.delete(name);
        });
      }
      const shared = read;
      shared.readers++;
      signal?.addEventListener("abort", () => {
        if (--shared.readers) return;
        if (reads.get(name) === shared) reads.delete(name);
        shared.controller.abort();
      }, { once: true });
      return shared.piece;
    },
    list: async (prefix: string, signal?: AbortSignal) => {
      stats.lists++;
      return port.list?.(prefix, signal);
    },
  };
}

/** A promise that is rejected when a signal is aborted. */
export function aborted(signal: AbortSignal | undefined): Promise<never> {
  const promise = new Promise<never>((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  promise.catch(() => {});
  return promise;
}


