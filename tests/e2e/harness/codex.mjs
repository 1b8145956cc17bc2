/**
 * The released Codex CLI, run once through `codex exec`.
 *
 * It gets a new home each time. Commands run without Codex's sandbox, because kernels of test
 * machines often forbid the namespaces it needs.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { installed } from './installed.mjs';
import { Child } from './process.mjs';
import { sandbox } from './sandbox.mjs';

const RUN_LIMIT_MS = 110_000;

const TRIPLES = {
  'linux-x64': 'x86_64-unknown-linux-musl',
  'linux-arm64': 'aarch64-unknown-linux-musl',
  'darwin-x64': 'x86_64-apple-darwin',
  'darwin-arm64': 'aarch64-apple-darwin',
};

/** @returns {string} */
function binary() {
  const here = `${platform()}-${arch()}`;
  return installed(`@openai/codex-${here}`, join('vendor', TRIPLES[here] ?? '', 'bin/codex'), 'CODEX_BIN');
}

/**
 * @typedef {object} Ran
 * @property {number} code
 * @property {any[]} events of `--json`
 * @property {Record<string, string | null>} files what the named files in the working folder hold afterwards
 * @property {string} trace all that it wrote, for a failure report
 * @property {number} seconds
 */

/**
 * @param {{config: string, model?: string, prompt: string, files: string[], catalog?: unknown}} run
 *   `config` is the text of a config.toml; `catalog` becomes its `model_catalog_json`
 * @returns {Promise<Ran>}
 */
export async function runCodex({ config, model, prompt, files, catalog }) {
  const home = await sandbox();
  try {
    const codexHome = join(home.root, 'codex');
    await mkdir(codexHome);
    await writeFile(join(codexHome, 'config.toml'), config);
    const args = ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    args.push('-c', 'analytics.enabled=false', '-c', 'check_for_update_on_startup=false');
    if (catalog) {
      const path = join(codexHome, 'models.json');
      await writeFile(path, JSON.stringify(catalog));
      args.push('-c', `model_catalog_json=${JSON.stringify(path)}`);
    }
    if (model) args.push('--model', model);
    const started = performance.now();
    const child = new Child(binary(), [...args, prompt], {
      cwd: home.work,
      env: { ...home.env, CODEX_HOME: codexHome },
    });
    const code = await child.finish(RUN_LIMIT_MS);
    const seconds = (performance.now() - started) / 1000;
    /** @type {Record<string, string | null>} */
    const written = {};
    for (const name of files) {
      const path = join(home.work, name);
      written[name] = existsSync(path) ? await readFile(path, 'utf8') : null;
    }
    const events = child.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return { code, events, files: written, trace: child.stdout + child.stderr, seconds };
  } finally {
    await home.remove();
  }
}
