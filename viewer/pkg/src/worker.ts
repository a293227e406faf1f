/** Engines in workers: a store in each, so that the page never waits for it and can end it. */

import { aborted, openHere, type Answer, type Batches, type Engine } from "./engine.ts";
import { panicked } from "./panic.ts";
import type { OpenOptions, Source, Stats } from "./types.ts";

/** Milliseconds that a worker has to stop what was cancelled. */
const PATIENCE = 10_000;

/** A call. The answer has its number. */
interface Call {
  id: number;
  name: "open" | "call" | "batches" | "next" | "free" | "abort";
  with: unknown[];
}

interface Reply {
  id: number;
  answer?: Answer;
  error?: { kind: unknown; message: string; key: unknown };
  stats?: Stats;
}

type Scope = Pick<Worker, "postMessage"> & EventTarget;

/** Answers the calls of a page. A worker calls this once. */
export function serve(): void {
  const scope = globalThis as unknown as Scope;
  let engine: Engine | undefined;
  const batches = new Map<number, Batches>();
  const running = new Map<number, AbortController>();
  // The module traps where it cannot report a panic, for instance without memory.
  scope.addEventListener("error", (event) => panicked(`the engine of zvf ended: ${(event as ErrorEvent).message}`));
  scope.addEventListener("unhandledrejection", (event) => panicked(`the engine of zvf ended: ${String((event as PromiseRejectionEvent).reason)}`));

  async function run({ id, name, with: given }: Call, signal: AbortSignal): Promise<Answer | undefined> {
    if (name === "open") engine = await openHere(given[0] as Source, given[1] as OpenOptions);
    else if (name === "call") return engine!.call(given[0] as string, given[1] as string, signal);
    else if (name === "batches") batches.set(id, await engine!.batches(given[0] as string));
    else if (name === "next") return batches.get(given[0] as number)?.next(signal);
    return undefined;
  }

  scope.addEventListener("message", async (event) => {
    const call = (event as MessageEvent<Call>).data;
    if (call.name === "abort") return running.get(call.id)?.abort();
    if (call.name === "free") {
      batches.get(call.id)?.free();
      batches.delete(call.id);
      return;
    }
    const controller = new AbortController();
    running.set(call.id, controller);
    const reply: Reply = { id: call.id };
    try {
      const answer = await run(call, controller.signal);
      if (answer) reply.answer = answer;
    } catch (error) {
      const { kind, message, key } = (error ?? {}) as Record<string, unknown>;
      reply.error = { kind, message: String(message ?? error), key };
    }
    running.delete(call.id);
    if (engine) reply.stats = engine.stats();
    scope.postMessage(reply, reply.answer?.buffers.map((each) => each.buffer) ?? []);
  });
}

/** Opens a store in a worker that calls `serve`. Closing the store ends the worker. */
export async function openIn(worker: Worker, source: Source, options: OpenOptions): Promise<Engine> {
  let calls = 0;
  let stats: Stats = { requests: 0, bytes: 0, lists: 0 };
  let ended: unknown;
  const waiting = new Map<number, { resolve(answer: Answer | undefined): void; reject(error: unknown): void }>();

  function end(error: unknown): void {
    ended ??= error;
    worker.terminate();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }
  worker.addEventListener("message", (event: MessageEvent<Reply>) => {
    const { id, answer, error } = event.data;
    stats = event.data.stats ?? stats;
    if (error === undefined) waiting.get(id)?.resolve(answer);
    else waiting.get(id)?.reject(error.kind === undefined ? new Error(error.message) : error);
    waiting.delete(id);
  });
  worker.addEventListener("error", (event) => end({ kind: "panic", message: `the worker of the engine ended: ${event.message}` }));

  function send(id: number, name: Call["name"], ...given: unknown[]): void {
    worker.postMessage({ id, name, with: given } satisfies Call);
  }
  function ask(id: number, signal: AbortSignal | undefined, name: Call["name"], ...given: unknown[]): Promise<Answer | undefined> {
    if (ended !== undefined) return Promise.reject(ended);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const answered = new Promise<Answer | undefined>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send(id, name, ...given);
    });
    const stop = (): void => {
      send(id, "abort");
      const late = setTimeout(
        () => end({ kind: "interrupted", message: "the engine did not stop when it was told to, and was ended; open the store again" }), PATIENCE);
      void answered.catch(() => {}).then(() => clearTimeout(late));
    };
    signal?.addEventListener("abort", stop, { once: true });
    void answered.catch(() => {}).then(() => signal?.removeEventListener("abort", stop));
    return Promise.race([answered, aborted(signal)]);
  }

  // Files keep their paths as the keys of a map only.
  const files = Array.isArray(source) ? new Map((source as File[]).map((file) => [file.webkitRelativePath || file.name, file])) : source;
  const { worker: _worker, signal, ...own } = options;
  await ask(++calls, signal, "open", files instanceof URL ? files.href : files, own);
  return {
    call: (method, request, aborting) => ask(++calls, aborting, "call", method, request) as Promise<Answer>,
    async batches(request) {
      const own = ++calls;
      await ask(own, undefined, "batches", request);
      return { next: (aborting) => ask(++calls, aborting, "next", own), free: () => send(own, "free") };
    },
    stats: () => stats,
    free: () => end({ kind: "interrupted", message: "the store is closed" }),
  };
}
