/**
 * What a failed run leaves behind, so that nobody has to run it again to learn why.
 */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { tail } from './process.mjs';
import { isHandshake, outline } from './record.mjs';

const OUT = join(import.meta.dirname, '../out');

/**
 * Runs the body of a test, after which the upstream must have had nothing to refuse. When it fails,
 * prints the ends of what Weir and the last client wrote and the record in outline, and keeps the
 * record whole.
 * @param {import('node:test').TestContext} t
 * @param {import('./weir.mjs').Weir} weir
 * @param {(saw: <R extends {trace: string}>(run: R) => R) => Promise<void>} body passes each client's run through `saw`
 */
export async function withEvidence(t, weir, body) {
  let client = '';
  try {
    await body((run) => {
      client = run.trace;
      return run;
    });
    // The practice upstream checks every request as the real backend would; a client may hide a refusal.
    // A handshake that it refuses is its own word and nobody's mistake.
    const requests = (await weir.record()).filter((request) => !isHandshake(request));
    const refused = requests.filter(({ status, outcome }) => status !== 200 && outcome !== 'cancelled');
    assert.equal(outline(refused), '', 'requests that the upstream refused');
  } catch (error) {
    const record = await weir.record();
    const kept = join(OUT, `${t.name.replaceAll(/[^a-z0-9]+/gi, '-')}.record.jsonl`);
    await mkdir(OUT, { recursive: true });
    await writeFile(kept, record.map((request) => `${JSON.stringify(request)}\n`).join(''));
    if (weir.died !== undefined) t.diagnostic(`weir ended by itself with ${weir.died}`);
    report(t, 'client', tail(client));
    report(t, 'weir stderr', tail(weir.child.stderr));
    report(t, `record, whole in out/${basename(kept)}`, outline(record));
    throw error;
  }
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} title
 * @param {string} text
 */
function report(t, title, text) {
  t.diagnostic(`${title}:${text ? '' : ' (empty)'}`);
  for (const line of text.split('\n').filter(Boolean)) t.diagnostic(`  ${line.slice(0, 600)}`);
}
