import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Processes, not threads: tests change the working directory, ids and signal handlers, and load the native addon.
    pool: 'forks',
    execArgv: ['--disable-warning=ExperimentalWarning'],
    maxWorkers: 3,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // What fails once in a while is told as `unsteady` there, so that it is seen, and mended.
    retry: process.env.CI === 'true' ? { count: 2, delay: 3000 } : 0,
    reporters: ['default', './scripts/summary-reporter.mjs'],
  },
})
