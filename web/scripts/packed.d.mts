/** Makes the app in a folder of its own and gives the folder. */
export function makeApp(): { folder: string; app: string };
/** Makes the app, checks its types and serves it, built unless in dev mode; `close` ends that and removes it. */
export function serveApp(options?: { hub?: string; mode?: "dev" | "preview"; port?: number }): Promise<{
  url: string;
  app: string;
  close: () => Promise<void>;
}>;
