/**
 * Where the released clients are.
 *
 * Both are published as a small package that picks one of several with a binary in it. The binaries
 * are used directly, so no install script has to run and nothing is installed twice.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/**
 * @param {string} name of an installed package
 * @param {string} path inside it
 * @param {string} override an environment variable that names another program, for platforms that the lock file lacks
 * @returns {string}
 */
export function installed(name, path, override) {
  const other = process.env[override];
  if (other) return other;
  try {
    const program = join(dirname(require.resolve(`${name}/package.json`)), path);
    if (existsSync(program)) return program;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'MODULE_NOT_FOUND') throw error;
  }
  throw new Error(`${name} is not installed: run "npm ci" in tests/e2e, or name the program in ${override}`);
}
