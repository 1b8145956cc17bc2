/**
 * Child processes that cannot outlive the run.
 *
 * A client starts helpers of its own, so each child leads a process group and is ended by that
 * group. A child is ended by the pid this module started, never by its name.
 */
import { spawn } from 'node:child_process';

/** How long a child may take to leave after it was asked to. */
const GRACE_MS = 5_000;

/** @type {Set<number>} process groups that are still to be ended */
const groups = new Set();

process.on('exit', endAll);

/** Ends every child at once, without waiting. */
export function endAll() {
  for (const pid of groups) signal(pid, 'SIGKILL');
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(-pid, name);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
  }
}

/** One child with everything it has written so far. */
export class Child {
  /**
   * @param {string} program
   * @param {string[]} args
   * @param {{cwd?: string, env: Record<string, string>}} options the whole environment: nothing is inherited
   */
  constructor(program, args, options) {
    this.stdout = '';
    this.stderr = '';
    this.closed = false;
    this.stopping = false;
    /** @type {Set<() => void>} */
    this.watchers = new Set();
    this.process = spawn(program, args, {
      ...options,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid } = this.process;
    if (pid) groups.add(pid);
    this.process.stdout.setEncoding('utf8').on('data', (text) => this.#grow('stdout', text));
    this.process.stderr.setEncoding('utf8').on('data', (text) => this.#grow('stderr', text));
    /** @type {Promise<number>} the exit code; -1 when a signal ended it */
    this.ended = new Promise((resolve, reject) => {
      this.process.once('error', reject);
      this.process.once('close', (code) => {
        this.closed = true;
        for (const wake of this.watchers) wake();
        resolve(code ?? -1);
      });
    });
    // A program that cannot be started is reported by whoever awaits `ended`, not as an unhandled rejection.
    this.ended.catch(() => {});
  }

  /**
   * @param {'stdout' | 'stderr'} stream
   * @param {string} text
   */
  #grow(stream, text) {
    this[stream] += text;
    for (const wake of this.watchers) wake();
  }

  /**
   * Waits until `look` finds in stdout what it wants.
   * @template T
   * @param {(stdout: string) => T | undefined} look
   * @param {number} limitMs
   * @returns {Promise<T>}
   */
  async until(look, limitMs) {
    const found = new Promise((resolve, reject) => {
      const watch = () => {
        const value = look(this.stdout);
        if (value !== undefined) resolve(value);
        else if (this.closed) reject(new Error(`ended without what was awaited\n${tail(this.stderr)}`));
      };
      this.watchers.add(watch);
      this.ended.catch(reject);
      watch();
    });
    return within(limitMs, found, () => `not written\n${tail(this.stdout)}\n${tail(this.stderr)}`);
  }

  /**
   * Waits until the program ends by itself; past the limit it is ended and the wait fails.
   * @param {number} limitMs
   */
  async finish(limitMs) {
    try {
      return await within(limitMs, this.ended, () => `still running\n${tail(this.stderr)}`);
    } finally {
      await this.stop();
    }
  }

  /** Ends the whole group, politely first. Safe to call twice. */
  async stop() {
    this.stopping = true;
    const { pid } = this.process;
    if (!pid || !groups.has(pid)) return;
    if (!this.closed) {
      signal(pid, 'SIGTERM');
      await within(GRACE_MS, this.ended, () => '').catch(() => {});
    }
    signal(pid, 'SIGKILL');
    await this.ended;
    groups.delete(pid);
  }
}

/**
 * @template T
 * @param {number} limitMs
 * @param {Promise<T>} promise
 * @param {() => string} what said when the limit passes
 * @returns {Promise<T>}
 */
export async function within(limitMs, promise, what) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${limitMs} ms: ${what()}`)), limitMs);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The end of a long text, for a failure report.
 * @param {string} text
 * @param {number} lines
 */
export function tail(text, lines = 25) {
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}
