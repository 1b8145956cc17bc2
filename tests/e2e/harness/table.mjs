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
const ROADS = join(OUT, 'roads');

const NOTE =
  'The backend is scripted (weir serve --practice); the clients are real. Only bytes, order and overlap are measured, not a model.';

/**
 * @typedef {object} Row
 * @property {string} client
 * @property {'lite' | 'full'} mode
 * @property {string} work what ran beside each other, e.g. "3 subagents"
 * @property {number} parentTurns
 * @property {number} atOnce most pieces of that work in progress at one instant
 * @property {number} parentBytes that the model reads in the parent's turns, sent or held by a connection
 * @property {number} totalBytes of all that was sent upstream
 * @property {number} seconds
 */

/** @type {[string, keyof Row, (value: any) => string][]} */
const COLUMNS = [
  ['client', 'client', String],
  ['mode', 'mode', String],
  ['work', 'work', String],
  ['parent turns', 'parentTurns', String],
  ['most at once', 'atOnce', String],
  ['parent reads bytes', 'parentBytes', (n) => n.toLocaleString('en')],
  ['sent upstream', 'totalBytes', (n) => n.toLocaleString('en')],
  ['wall s', 'seconds', (n) => n.toFixed(1)],
];

/**
 * One long conversation on one of the roads.
 * @typedef {object} Road
 * @property {string} client
 * @property {'SSE' | 'held'} road
 * @property {number} turns
 * @property {number} deltas turns that sent only what was new
 * @property {number} sent bytes
 * @property {number} cachedShare of the input tokens of all turns, in percent; modelled by the practice upstream
 */

/** @type {[string, keyof Road, (value: any) => string][]} */
const ROADS_COLUMNS = [
  ['client', 'client', String],
  ['road', 'road', String],
  ['turns', 'turns', String],
  ['delta turns', 'deltas', String],
  ['sent bytes', 'sent', (n) => n.toLocaleString('en')],
  ['cached (modelled)', 'cachedShare', (n) => `${n.toFixed(0)} %`],
];

/** @param {Road} road */
export async function addRoad(road) {
  await mkdir(ROADS, { recursive: true });
  await writeFile(join(ROADS, `${road.client}-${road.road}.json`.replaceAll(' ', '-')), JSON.stringify(road));
}

/** @param {Row} row */
export async function addRow(row) {
  await mkdir(ROWS, { recursive: true });
  const name = `${row.client} ${row.work} ${row.mode === 'lite' ? 0 : 1}`.replaceAll(' ', '-');
  await writeFile(join(ROWS, `${name}.json`), JSON.stringify(row));
}

/**
 * @param {any[]} rows
 * @param {[string, string, (value: any) => string][]} columns
 */
export function layOut(rows, columns = COLUMNS) {
  const cells = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, key, show]) => show(row[key])))];
  const widths = columns.map((_, column) => Math.max(...cells.map((line) => line[column].length)));
  const line = (texts) =>
    texts
      .map((text, i) => (i < 3 ? text.padEnd(widths[i]) : text.padStart(widths[i])))
      .join('  ')
      .trimEnd();
  const [head, ...body] = cells.map(line);
  return [head, '-'.repeat(head.length), ...body, '', NOTE, ''].join('\n');
}

/** @param {string} folder */
async function rowsOf(folder) {
  const names = (await readdir(folder).catch(() => [])).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))));
}

async function print() {
  const text = `${layOut(await rowsOf(ROWS))}\n${layOut(await rowsOf(ROADS), ROADS_COLUMNS)}`;
  await writeFile(join(OUT, 'table.txt'), text);
  process.stdout.write(`\n${text}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv[2] === 'clear') await rm(OUT, { recursive: true, force: true });
  else await print();
}
