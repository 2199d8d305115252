// The console. Nothing is kept in the address that belongs to the reader, and nothing of the run anywhere else.
import { RouterProvider } from "@tanstack/react-router";
import { createClient, RunyardProvider } from "@runyard/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { boot } from "./app/boot";
import { router } from "./app/router";
import { startTheme } from "./app/theme";
import "./styles/index.css";

const PAGE_KEY = "runyard.page";
/** So long the first picture waits for the bundled fonts: what is drawn with them never moves. */
const FONTS_MS_MAX = 400;

async function fonts(): Promise<void> {
  const wanted = ["400 13px 'Inter Variable'", "400 12px 'JetBrains Mono Variable'"].map((font) => document.fonts.load(font));
  await Promise.race([Promise.allSettled(wanted), new Promise((resolve) => setTimeout(resolve, FONTS_MS_MAX))]);
}

async function start(): Promise<void> {
  startTheme();
  await fonts();
  const client = createClient({ surface: boot().hub ? "react" : "dev" });
  // A login in another window is a login here too.
  window.addEventListener("storage", ({ key }) => {
    if (key === PAGE_KEY) client.reconnect();
  });
  const place = document.getElementById("root");
  if (!place) return;
  createRoot(place).render(
    <StrictMode>
      <RunyardProvider client={client}>
        <RouterProvider router={router} />
      </RunyardProvider>
    </StrictMode>,
  );
}

void start();
