// The clock, the dice and the window, so that tests can bring their own.

/** What the stores need of the place they run in. */
export interface Environment {
  /** Milliseconds since 1970. */
  now(): number;
  /** From 0 up to 1. */
  random(): number;
  /** Calls once after so many milliseconds; gives what calls it off. */
  after(ms: number, run: () => void): () => void;
  /** Calls once before the next paint, or null where nothing paints; gives what calls it off. */
  frame(run: () => void): (() => void) | null;
  /** Whether nobody can see the page. */
  hidden(): boolean;
  /** Calls when the page is hidden or shown again; gives what ends it. */
  onVisibility(run: () => void): () => void;
  /** Calls when the network is there again; gives what ends it. */
  onOnline(run: () => void): () => void;
}

/** The browser's, and what there is of it in Node. */
export function ownEnvironment(): Environment {
  const page = typeof document === "undefined" ? null : document;
  const listen = (target: EventTarget | null, name: string, run: () => void) => {
    target?.addEventListener(name, run);
    return () => target?.removeEventListener(name, run);
  };
  return {
    now: () => Date.now(),
    random: () => Math.random(),
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    frame: (run) => {
      if (typeof requestAnimationFrame === "undefined" || page?.visibilityState === "hidden") return null;
      const frame = requestAnimationFrame(run);
      return () => cancelAnimationFrame(frame);
    },
    hidden: () => page?.visibilityState === "hidden",
    onVisibility: (run) => listen(page, "visibilitychange", run),
    onOnline: (run) => listen(typeof window === "undefined" ? null : window, "online", run),
  };
}

/** Waits; ends early when the signal is aborted or `wake` is called. */
export function pause(
  environment: Environment,
  ms: number,
  signal: AbortSignal,
  onWake: (wake: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = environment.after(ms, done);
    signal.addEventListener("abort", done);
    onWake(done);
  });
}
