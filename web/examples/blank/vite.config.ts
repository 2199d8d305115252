import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The hub's `[server] origins` has to name the address of this app.
const target = process.env.RUNYARD_HUB ?? "http://127.0.0.1:4710";
const proxy = Object.fromEntries(["/api", "/login", "/logout"].map((path) => [path, { target, changeOrigin: true }]));

export default defineConfig({ plugins: [react()], server: { proxy }, preview: { proxy } });
