/**
 * No client can change the serving mode: OpenCode is told, in its own configuration, to ask for the
 * other dialect in every way it knows, and what goes upstream stays as the user set it.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { assertFull, assertLite } from './harness/dialect.mjs';
import { withEvidence } from './harness/evidence.mjs';
import { runOpenCode } from './harness/opencode.mjs';
import { turns } from './harness/record.mjs';
import { AT_ONCE } from './harness/scenario.mjs';
import { snippet } from './harness/snippets.mjs';
import { Weir } from './harness/weir.mjs';

const LIMIT = { timeout: 120_000 };
const PROMPT = 'Reply with the single word alpha';

describe('a client cannot choose the dialect', () => {
  /** @type {Weir} */
  let weir;
  beforeEach(async () => {
    weir = await Weir.start({ scenario: AT_ONCE });
  }, LIMIT);
  afterEach(() => weir?.stop());

  /**
   * @param {string} model
   * @param {{headers?: Record<string, string>, options?: Record<string, unknown>}} demand
   * @param {(run: import('./harness/opencode.mjs').Ran) => any} saw
   */
  async function ask(model, demand, saw) {
    const config = JSON.parse(await snippet('opencode.json', weir));
    const { weir: provider } = config.provider;
    provider.options.headers = demand.headers;
    provider.models[model].options = demand.options;
    const mark = await weir.mark();
    const run = saw(await runOpenCode({ config: JSON.stringify(config), model, prompt: PROMPT }));
    assert.equal(run.code, 0);
    assert.match(run.answer, /alpha/);
    const requests = await weir.recordSince(mark, (all) => turns(all).parent.length > 0);
    return { requests, asked: turns(requests).parent[0] };
  }

  test('the Lite marker does not make a full turn Lite', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const headers = {
        'x-openai-internal-codex-responses-lite': 'true',
        'x-weir-mode': 'lite',
        originator: 'codex_cli_rs',
      };
      const { requests } = await ask('practice-full', { headers }, saw);
      assertFull(requests, { parallelToolCalls: undefined });
    }),
  );

  test('parallelToolCalls arrives as the client said it, in a turn that stays full', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const { asked } = await ask('practice-full', { options: { parallelToolCalls: true } }, saw);
      assertFull([asked], { parallelToolCalls: true });
    }),
  );

  test('no header and no parallelToolCalls makes a Lite turn full', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const headers = { 'x-openai-internal-codex-responses-lite': 'false', 'x-weir-mode': 'full' };
      const { requests } = await ask('practice-lite', { headers, options: { parallelToolCalls: true } }, saw);
      assertLite(requests);
    }),
  );

  test('nor does the marker undo what the user set', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      await weir.command('mode', 'practice-lite', 'full');
      const headers = { 'x-openai-internal-codex-responses-lite': 'true' };
      const { requests } = await ask('practice-lite', { headers }, saw);
      assertFull(requests, { parallelToolCalls: undefined });
    }),
  );
});
