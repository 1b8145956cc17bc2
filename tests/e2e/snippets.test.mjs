/**
 * What the documentation tells people to paste is what works.
 *
 * The README must contain both snippets word for word, and `weir serve` must print the same
 * configuration for the address and key it really has.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { withEvidence } from './harness/evidence.mjs';
import { runCodex } from './harness/codex.mjs';
import { runOpenCode } from './harness/opencode.mjs';
import { turns } from './harness/record.mjs';
import { AT_ONCE } from './harness/scenario.mjs';
import { snippet } from './harness/snippets.mjs';
import { Weir } from './harness/weir.mjs';

const LIMIT = { timeout: 120_000 };
const HERE = import.meta.dirname;

describe('the snippets of the README', () => {
  /** @type {Weir} */
  let weir;
  before(async () => {
    weir = await Weir.start({ scenario: AT_ONCE });
  }, LIMIT);
  after(() => weir?.stop());

  test('stand in the README word for word', async () => {
    const readme = await readFile(join(HERE, '../../README.md'), 'utf8');
    for (const name of ['opencode.json', 'codex.toml']) {
      const text = await readFile(join(HERE, 'snippets', name), 'utf8');
      assert.ok(readme.includes(text.trimEnd()), `README.md must include tests/e2e/snippets/${name} verbatim`);
    }
  });

  test('OpenCode answers through the pasted configuration', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const config = await snippet('opencode.json', weir);
      const model = JSON.parse(config).model.replace('weir/', '');
      const mark = await weir.mark();
      const run = saw(await runOpenCode({ config, model, prompt: 'Hello' }));
      assert.equal(run.code, 0);
      assert.match(run.answer, /practice/i, 'the answer says that it is practice');
      const [asked] = turns(await weir.recordSince(mark, (all) => turns(all).parent.length > 0)).parent;
      assert.equal(asked.model, model);
    }),
  );

  test('Codex answers through the pasted configuration', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const mark = await weir.mark();
      const config = await snippet('codex.toml', weir);
      const run = saw(await runCodex({ config, prompt: 'Hello', files: [] }));
      assert.equal(run.code, 0);
      const answer = run.events.find(({ type, item }) => type === 'item.completed' && item.type === 'agent_message');
      assert.match(answer.item.text, /practice/i);
      const [asked] = await weir.recordSince(mark, (all) => all.length > 0);
      assert.ok(config.includes(`model = "${asked.model}"`), 'the model of the snippet');
    }),
  );

  test('weir serve prints the same configuration', LIMIT, async () => {
    const { config, key } = await Weir.greeting();
    const { baseURL, apiKey } = config.provider.weir.options;
    assert.match(baseURL, /^http:\/\/127\.0\.0\.1:[1-9]\d*\/v1$/);
    assert.equal(apiKey, key);
    assert.deepEqual(config, JSON.parse(await snippet('opencode.json', { baseUrl: baseURL, key })));
  });
});
