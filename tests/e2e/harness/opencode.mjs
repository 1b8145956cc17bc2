/**
 * The released OpenCode, run once with one prompt.
 *
 * It gets a new home each time, and flags that only keep it from the network.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { installed } from './installed.mjs';
import { Child } from './process.mjs';
import { sandbox } from './sandbox.mjs';

const RUN_LIMIT_MS = 110_000;

const QUIET = {
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_CLAUDE_CODE: '1',
  OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  OPENCODE_DISABLE_SHARE: '1',
  OPENCODE_PURE: '1',
};

/** The baseline build is the same program for processors without AVX2, so it runs on all. */
const binary = () => installed(`opencode-${platform()}-${arch()}-baseline`, 'bin/opencode', 'OPENCODE_BIN');

/**
 * @typedef {object} Ran
 * @property {number} code
 * @property {any[]} events of `--format json`
 * @property {string} answer the text that a user reads
 * @property {string} trace all that it wrote, for a failure report
 * @property {number} seconds
 */

/**
 * @param {{config: string, model: string, prompt: string}} run `config` is the text of an opencode.json
 * @returns {Promise<Ran>}
 */
export async function runOpenCode({ config, model, prompt }) {
  const home = await sandbox();
  try {
    const folder = join(home.env.XDG_CONFIG_HOME, 'opencode');
    await mkdir(folder);
    await writeFile(join(folder, 'opencode.json'), config);
    const started = performance.now();
    const args = ['run', '--format', 'json', '--print-logs', '--log-level', 'WARN', '--model', `weir/${model}`];
    const child = new Child(binary(), [...args, prompt], { cwd: home.work, env: { ...home.env, ...QUIET } });
    const code = await child.finish(RUN_LIMIT_MS);
    const events = child.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    const answer = events
      .filter((event) => event.type === 'text')
      .map((event) => event.part.text)
      .join('\n');
    return { code, events, answer, trace: child.stdout + child.stderr, seconds: (performance.now() - started) / 1000 };
  } finally {
    await home.remove();
  }
}

/**
 * The subagents as OpenCode itself saw them, in the order in which it finished them.
 * @param {Ran} run
 * @returns {{start: number, end: number, status: string, output: string}[]}
 */
export function tasks(run) {
  return run.events
    .filter((event) => event.type === 'tool_use' && event.part.tool === 'task')
    .map(({ part }) => ({ ...part.state.time, status: part.state.status, output: part.state.output }));
}
