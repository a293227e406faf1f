/** What happens when the engine meets a defect of its own. */

const listeners = new Set<(sentence: string) => void>();
let sentence: string | undefined;

/** Called by the module, which then ends. */
export function panicked(text: string): void {
  sentence = text;
  for (const listener of listeners) listener(text);
  listeners.clear();
}

/** Settles as `work` does, or is rejected when the module ends. */
export function unlessPanicked<T>(work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener = (text: string): void => reject({ kind: "panic", message: text });
    if (sentence !== undefined) return listener(sentence);
    listeners.add(listener);
    work().then(resolve, reject).finally(() => listeners.delete(listener));
  });
}
