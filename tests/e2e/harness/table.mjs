/**
 * The table of what the runs measured.
 *
 * Test files run in processes of their own, so each leaves its rows in a file below `out/rows`.
 * `node harness/table.mjs clear` empties that folder before a run; `print` sorts the rows, prints
 * them and writes `out/table.txt`.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const OUT = join(import.meta.dirname, '../out');
const ROWS = join(OUT, 'rows');

const NOTE =
  'The backend is scripted (weir serve --practice); the clients are real. Only bytes, order and overlap are measured, not a model.';

/**
 * @typedef {object} Row
 * @property {string} client
 * @property {'lite' | 'full'} mode
 * @property {string} work what ran beside each other, e.g. "3 subagents"
 * @property {number} parentTurns
 * @property {number} atOnce most pieces of that work in progress at one instant
 * @property {number} parentBytes of the bodies of the parent's turns
 * @property {number} totalBytes of all bodies that went upstream
 * @property {number} seconds
 */

/** @type {[string, keyof Row, (value: any) => string][]} */
const COLUMNS = [
  ['client', 'client', String],
  ['mode', 'mode', String],
  ['work', 'work', String],
  ['parent turns', 'parentTurns', String],
  ['most at once', 'atOnce', String],
  ['parent input bytes', 'parentBytes', (n) => n.toLocaleString('en')],
  ['upstream bytes', 'totalBytes', (n) => n.toLocaleString('en')],
  ['wall s', 'seconds', (n) => n.toFixed(1)],
];

/** @param {Row} row */
export async function addRow(row) {
  await mkdir(ROWS, { recursive: true });
  const name = `${row.client} ${row.work} ${row.mode === 'lite' ? 0 : 1}`.replaceAll(' ', '-');
  await writeFile(join(ROWS, `${name}.json`), JSON.stringify(row));
}

/** @param {Row[]} rows */
export function layOut(rows) {
  const cells = [COLUMNS.map(([title]) => title), ...rows.map((row) => COLUMNS.map(([, key, show]) => show(row[key])))];
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((line) => line[column].length)));
  const line = (texts) =>
    texts
      .map((text, i) => (i < 3 ? text.padEnd(widths[i]) : text.padStart(widths[i])))
      .join('  ')
      .trimEnd();
  const [head, ...body] = cells.map(line);
  return [head, '-'.repeat(head.length), ...body, '', NOTE, ''].join('\n');
}

async function print() {
  const names = (await readdir(ROWS).catch(() => [])).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const rows = await Promise.all(names.map(async (name) => JSON.parse(await readFile(join(ROWS, name), 'utf8'))));
  const text = layOut(rows);
  await writeFile(join(OUT, 'table.txt'), text);
  process.stdout.write(`\n${text}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv[2] === 'clear') await rm(OUT, { recursive: true, force: true });
  else await print();
}
