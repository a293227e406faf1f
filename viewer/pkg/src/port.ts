/** Sources of bytes: servers, files, folders. */

import type { Piece, Port, Range, Source } from "./types.ts";

/** An error of a port, with the class of the failure. */
export class PortError extends Error {
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Where a range of an object of `size` bytes lies; `undefined` past its end. */
export function place(range: Range | undefined, size: number): [number, number] {
  const start = Math.min(range === undefined ? 0 : range.start < 0 ? Math.max(0, size + range.start) : range.start, size);
  return [start, Math.max(start, Math.min(range?.end ?? size, size))];
}

/** The objects below an address, over `fetch` with ranges. */
export class FetchPort implements Port {
  readonly name: string;
  readonly #root: URL;
  readonly #headers: Record<string, string>;
  readonly #most: number;
  /** Bytes of the answers that are being read. */
  #held = 0;

  /** Answers that are being read may have `most` bytes in total. */
  constructor(address: string | URL, headers: Record<string, string> = {}, most = 256 << 20) {
    const root = new URL(address, globalThis.location?.href);
    this.name = root.href;
    if (!root.pathname.endsWith("/")) root.pathname += "/";
    this.#root = root;
    this.#headers = headers;
    this.#most = most;
  }

  async read(key: string, range: Range | undefined, signal?: AbortSignal, unless?: string): Promise<Piece | null | undefined> {
    const url = new URL(this.#root);
    url.pathname += key.split("/").map(encodeURIComponent).join("/");
    const headers: Record<string, string> = { ...this.#headers };
    if (range !== undefined) {
      const { start, end } = range;
      headers["Range"] = start < 0 ? `bytes=${start}` : `bytes=${start}-${end === undefined ? "" : end - 1}`;
    }
    if (unless !== undefined) headers["If-None-Match"] = unless;
    let answer: Response;
    try {
      answer = await fetch(url, { headers, signal: signal ?? null, cache: unless === undefined ? "default" : "no-store" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new PortError("unavailable", `${url.href}: no answer; the server is down, or does not allow this page (CORS)`);
    }
    if (answer.status === 404 || answer.status === 410) return undefined;
    if (answer.status === 304) return null;
    if (answer.status === 401 || answer.status === 403) {
      throw new PortError("forbidden", `${url.href}: the server refuses access, status code: ${answer.status}`);
    }
    if (!answer.ok) throw new PortError("unavailable", `${url.href}: status code: ${answer.status}`);
    if (range !== undefined && answer.status !== 206) {
      await answer.body?.cancel();
      // The engine then reads the object whole, within its memory budget.
      throw new PortError("ranges", `${url.href}: the server ignores ranges (non-partial response)`);
    }
    const wanted = range === undefined ? this.#most : range.start < 0 ? -range.start : (range.end ?? range.start + this.#most) - range.start;
    const bytes = await this.#body(answer, wanted, url.href);
    const modified = Date.parse(answer.headers.get("last-modified") ?? "") || 0;
    const etag = answer.headers.get("etag") ?? undefined;
    if (range === undefined) return { bytes, start: 0, size: bytes.length, modified, ...(etag && { etag }) };
    const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
    // Without the header, which CORS may hide, the place is that of the request and the size unknown.
    if (found === null && range.start < 0) {
      throw new PortError("unsupported", `${url.href}: the server does not expose Content-Range to pages (CORS: Access-Control-Expose-Headers)`);
    }
    const start = found === null ? range.start : Number(found[1]);
    const size = found === null ? start + bytes.length : Number(found[3]);
    return { bytes, start, size, modified, ...(etag && { etag }) };
  }

  /** Reads an answer, which the server may not end. */
  async #body(answer: Response, wanted: number, name: string): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    const reader = answer.body?.getReader();
    try {
      for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
        size += part.value.length;
        this.#held += part.value.length;
        if (size > wanted || this.#held > this.#most) {
          throw new PortError("unavailable", `${name}: the server sends more than was asked for, or than the budget of ${this.#most} bytes`);
        }
        parts.push(part.value);
      }
    } catch (error) {
      // A server that goes on sending would block the connection.
      await reader?.cancel().catch(() => {});
      throw error;
    } finally {
      this.#held -= size;
    }
    if (parts.length === 1) return parts[0]!;
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

/** Files by their keys: of a drop, of an input, or of a folder. */
export class FilesPort implements Port {
  readonly name: string;
  readonly #files: ReadonlyMap<string, Blob>;

  constructor(files: ReadonlyMap<string, Blob>, name = "dropped files") {
    this.#files = below(files);
    this.name = name;
  }

  async read(key: string, range: Range | undefined): Promise<Piece | undefined> {
    const file = this.#files.get(key);
    return file && slice(file, range);
  }

  async list(prefix: string): Promise<[string, number][]> {
    const start = prefix === "" ? "" : `${prefix}/`;
    return [...this.#files].filter(([key]) => key.startsWith(start)).map(([key, file]) => [key, file.size]);
  }
}

/** A folder that the user picked. Files are opened when they are read. */
export class FolderPort implements Port {
  readonly name: string;
  readonly #root: FileSystemDirectoryHandle;

  constructor(root: FileSystemDirectoryHandle) {
    this.#root = root;
    this.name = root.name;
  }

  async #folder(parts: string[]): Promise<FileSystemDirectoryHandle> {
    let folder = this.#root;
    for (const part of parts) folder = await folder.getDirectoryHandle(part);
    return folder;
  }

  async read(key: string, range: Range | undefined): Promise<Piece | undefined> {
    const parts = key.split("/");
    const name = parts.pop() ?? "";
    try {
      const folder = await this.#folder(parts);
      return await slice(await (await folder.getFileHandle(name)).getFile(), range);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw new PortError("unavailable", `${key}: ${String(error)}`);
    }
  }

  async list(prefix: string): Promise<[string, number][]> {
    const found: [string, number][] = [];
    const walk = async (folder: FileSystemDirectoryHandle, path: string): Promise<void> => {
      for await (const [name, child] of folder.entries()) {
        const key = path === "" ? name : `${path}/${name}`;
        if (child.kind === "directory") await walk(child as FileSystemDirectoryHandle, key);
        else found.push([key, (await (child as FileSystemFileHandle).getFile()).size]);
      }
    };
    try {
      await walk(await this.#folder(prefix === "" ? [] : prefix.split("/")), prefix);
    } catch (error) {
      if (!isAbsent(error)) throw new PortError("unavailable", `${prefix}: ${String(error)}`);
    }
    return found;
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof DOMException && ["NotFoundError", "TypeMismatchError"].includes(error.name);
}

async function slice(file: Blob, range: Range | undefined): Promise<Piece> {
  const [start, end] = place(range, file.size);
  const bytes = new Uint8Array(await file.slice(start, end).arrayBuffer());
  return { bytes, start, size: file.size, modified: file instanceof File ? file.lastModified : 0 };
}

/** The files below the shallowest folder that has a `zarr.json`. */
function below(files: ReadonlyMap<string, Blob>): ReadonlyMap<string, Blob> {
  const roots = [...files.keys()].filter((key) => key === "zarr.json" || key.endsWith("/zarr.json"));
  const root = roots.sort((a, b) => a.split("/").length - b.split("/").length)[0] ?? "zarr.json";
  const folder = root.slice(0, -"zarr.json".length);
  const inside = [...files].filter(([key]) => key.startsWith(folder));
  return new Map(inside.map(([key, file]) => [key.slice(folder.length), file]));
}

/** The port of a source. */
export function portOf(source: Source, headers?: Record<string, string>, most?: number): Port {
  if (typeof source === "string" || source instanceof URL) return new FetchPort(source, headers, most);
  if (Array.isArray(source)) {
    const files = source as readonly File[];
    return new FilesPort(new Map(files.map((file) => [file.webkitRelativePath || file.name, file])));
  }
  if (source instanceof Map) return new FilesPort(source as Map<string, Blob>);
  if (source instanceof Blob) throw new PortError("unsupported", "zip files are not read in browsers yet; unpack the file and open its folder");
  if ("read" in source) return source as Port;
  return new FolderPort(source as FileSystemDirectoryHandle);
}
