/**
 * The program under test: `weir serve --practice` on a port of its own, and its other commands.
 *
 * The binary is the one that `WEIR_BIN` names, else the debug build of this checkout. It is only
 * ever spoken to as a user would: command line, ready line, record file.
 */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child, endAll } from './process.mjs';
import { isHandshake, parseRecord } from './record.mjs';
import { sandbox } from './sandbox.mjs';

const START_LIMIT_MS = 30_000;
const COMMAND_LIMIT_MS = 30_000;
const RECORD_LIMIT_MS = 15_000;

/** @returns {string} */
function binary() {
  const target = process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, '../../../target');
  const path = resolve(process.env.WEIR_BIN ?? join(target, 'debug/weir'));
  if (!existsSync(path)) {
    throw new Error(`there is no ${path}: build it with "cargo build -p weir", or name another in WEIR_BIN`);
  }
  return path;
}

/** A running program on a data folder that lives as long as this object. */
export class Weir {
  /** Where it listens, e.g. `http://127.0.0.1:40123/v1`. */
  baseUrl = '';
  /** The data key. */
  key = '';
  /** @type {number | undefined} its exit code when it ended without being asked to */
  died;

  /**
   * @param {string} program
   * @param {import('./sandbox.mjs').Sandbox} home
   * @param {string[]} options of `weir serve --practice`
   */
  constructor(program, home, options) {
    this.program = program;
    this.home = home;
    const args = ['serve', '--practice', '--port', '0', '--data', this.data, ...options];
    this.child = new Child(program, args, { cwd: home.work, env: home.env });
  }

  get data() {
    return join(this.home.root, 'data');
  }

  get recordFile() {
    return join(this.home.root, 'record.jsonl');
  }

  /**
   * @param {{scenario: string}} options the text of a scenario file
   * @returns {Promise<Weir>}
   */
  static async start({ scenario }) {
    const program = binary();
    const home = await sandbox();
    const script = join(home.root, 'scenario.toml');
    await writeFile(script, scenario);
    const weir = new Weir(program, home, ['--json', '--record', join(home.root, 'record.jsonl'), '--scenario', script]);
    try {
      const line = await weir.child.until((text) => /^(.*)\n/.exec(text)?.[1], START_LIMIT_MS);
      const ready = JSON.parse(line);
      if (ready.ready !== true) throw new Error(`not a ready line: ${line}`);
      weir.baseUrl = ready.base_url;
      weir.key = ready.key;
    } catch (error) {
      await weir.stop();
      throw error;
    }
    // A client would try for a minute to reach a program that is gone; its run ends here instead.
    weir.child.ended.then((code) => {
      if (weir.child.stopping) return;
      weir.died = code;
      endAll();
    });
    return weir;
  }

  /**
   * What `weir serve` shows to a person who starts it: the OpenCode configuration out of its greeting.
   * @returns {Promise<{config: any, key: string}>} `key` is what `weir key` prints for the same data folder
   */
  static async greeting() {
    const program = binary();
    const weir = new Weir(program, await sandbox(), []);
    try {
      const config = await weir.child.until(printedConfig, START_LIMIT_MS);
      return { config, key: (await weir.command('key')).trim() };
    } finally {
      await weir.stop();
    }
  }

  /**
   * Runs another command of the program on the same data folder, while it serves.
   * @param {string[]} args
   * @returns {Promise<string>} what it printed
   */
  async command(...args) {
    const child = new Child(this.program, [...args, '--data', this.data], { cwd: this.home.work, env: this.home.env });
    const code = await child.finish(COMMAND_LIMIT_MS);
    if (code !== 0) throw new Error(`weir ${args.join(' ')} ended with ${code}\n${child.stderr}`);
    return child.stdout;
  }

  /**
   * What the practice upstream has received and answered so far.
   * @returns {Promise<import('./record.mjs').Received[]>} in order of arrival
   */
  async record() {
    return existsSync(this.recordFile) ? parseRecord(await readFile(this.recordFile, 'utf8')) : [];
  }

  /** @returns {Promise<number>} the number of the last request recorded so far */
  async mark() {
    return (await this.record()).at(-1)?.number ?? 0;
  }

  /**
   * The requests for a response after a mark, once all of them have ended and `enough` says that the awaited one is there.
   * @param {number} mark
   * @param {(requests: import('./record.mjs').Received[]) => boolean} enough
   */
  async recordSince(mark, enough) {
    const until = performance.now() + RECORD_LIMIT_MS;
    for (;;) {
      const all = (await this.record()).filter(({ number }) => number > mark);
      const gapless = all.every(({ number }, i) => number === mark + i + 1);
      const requests = all.filter((request) => request.path.endsWith('/responses') && !isHandshake(request));
      if (gapless && enough(requests)) return requests;
      if (performance.now() > until) {
        throw new Error(`the record is not complete after ${RECORD_LIMIT_MS} ms (gapless: ${gapless})`);
      }
      await sleep(50);
    }
  }

  /**
   * The catalog in the shape that Codex reads, as a user would save it for `model_catalog_json`.
   * @returns {Promise<{models: any[]}>}
   */
  async codexCatalog() {
    const response = await fetch(`${this.baseUrl}/models?client_version=0.171.0`, {
      headers: { authorization: `Bearer ${this.key}` },
      signal: AbortSignal.timeout(COMMAND_LIMIT_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`/v1/models answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  async stop() {
    await this.child.stop();
    await this.home.remove();
  }
}

/**
 * The first JSON object that a text shows over several lines, or nothing while it is not complete.
 * @param {string} text
 */
function printedConfig(text) {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.trim() === '{');
  if (first < 0) return undefined;
  const last = lines.indexOf(lines[first].replace('{', '}'), first);
  return last < 0 ? undefined : JSON.parse(lines.slice(first, last + 1).join('\n'));
}
