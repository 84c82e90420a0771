import { defineConfig } from "vitest/config";

export default defineConfig({ test: { globalSetup: "./jitney.setup.ts" } });
