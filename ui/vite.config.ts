import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Relative addresses: the endpoint may serve the page under any path, the desktop under its own scheme.
  base: './',
  plugins: [svelte()],
  build: {
    target: ['chrome109', 'firefox115', 'safari16'],
    // Files instead of data: URLs, so that the policy `default-src 'self'` holds without an exception.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `npm run dev` beside a running program, or beside `node mock/server.mjs`.
    proxy: { '/api': 'http://127.0.0.1:8788' },
    fs: { allow: ['..'] },
  },
  // Vitest would take Svelte's server build otherwise.
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
    env: { TZ: 'UTC' },
    // Generous, so that a busy machine never decides a test.
    testTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
})
