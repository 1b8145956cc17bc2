/**
 * The configuration that users paste, filled in for one run.
 *
 * The files in `snippets/` are what the README shows and what `weir serve` prints. A user replaces
 * the key (and the address, when the port is another); exactly that is done here and nothing more.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const ADDRESS = 'http://127.0.0.1:8788/v1';
const KEY = 'WEIR-KEY';

/**
 * @param {string} name of the file in `snippets/`
 * @param {{baseUrl: string, key: string}} weir
 */
export async function snippet(name, weir) {
  const text = await readFile(join(import.meta.dirname, '../snippets', name), 'utf8');
  for (const placeholder of [ADDRESS, KEY]) {
    if (text.split(placeholder).length !== 2) throw new Error(`${name} must contain ${placeholder} once`);
  }
  return text.replace(ADDRESS, weir.baseUrl).replace(KEY, weir.key);
}
