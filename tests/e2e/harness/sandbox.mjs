/**
 * A private home for one client.
 *
 * The real clients read and write half a dozen folders below the home directory. Every run gets
 * new ones, and an environment that contains nothing else, so no login, configuration or cache of
 * whoever runs the tests can change a result or be changed by it.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * @typedef {object} Sandbox
 * @property {string} root removed by `remove`
 * @property {string} work the folder that a client is started in
 * @property {Record<string, string>} env
 * @property {() => Promise<void>} remove
 */

/** @returns {Promise<Sandbox>} */
export async function sandbox() {
  const root = await mkdtemp(join(tmpdir(), 'weir-e2e-'));
  const folder = async (name) => {
    const path = join(root, name);
    await mkdir(path, { recursive: true });
    return path;
  };
  return {
    root,
    work: await folder('work'),
    env: {
      PATH: process.env.PATH ?? '/usr/bin:/bin',
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      NO_COLOR: '1',
      HOME: await folder('home'),
      TMPDIR: await folder('tmp'),
      XDG_DATA_HOME: await folder('home/data'),
      XDG_CONFIG_HOME: await folder('home/config'),
      XDG_CACHE_HOME: await folder('home/cache'),
      XDG_STATE_HOME: await folder('home/state'),
    },
    remove: () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}
