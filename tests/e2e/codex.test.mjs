/**
 * The real Codex CLI over HTTP with a provider entry: two commands in both dialects.
 *
 * Each command waits for a trace of the other, five seconds at most, and says whether it saw it. So
 * the files say whether the two ran beside each other, whatever the speed of the machine: in Lite the
 * second is not even written by the model before the first has ended.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  assertBooked,
  assertCallsBeforeOutputs,
  assertFull,
  assertLite,
  assertOffersAtTopLevel,
  assertOneCallPerTurn,
} from './harness/dialect.mjs';
import { withEvidence } from './harness/evidence.mjs';
import { runCodex } from './harness/codex.mjs';
import { bytes, bytesRead, offeredTools, outputs } from './harness/record.mjs';
import { AT_ONCE } from './harness/scenario.mjs';
import { snippet } from './harness/snippets.mjs';
import { addRow } from './harness/table.mjs';
import { Weir } from './harness/weir.mjs';

const MODEL = 'practice-lite';
const LIMIT = { timeout: 120_000 };

/**
 * @param {string} own
 * @param {string} other
 */
const command = (own, other) =>
  `touch ${own}; for i in $(seq 50); do [ -e ${other} ] && break; sleep 0.1; done; [ -e ${other} ] && echo yes > ${own}-saw-${other} || echo no > ${own}-saw-${other}`;
const PROMPT = `run in parallel: \`${command('left', 'right')}\` and \`${command('right', 'left')}\``;
const FILES = ['left-saw-right', 'right-saw-left'];
const EMITTED = ['touch left', 'touch right'];

describe('Codex CLI runs two commands', () => {
  /** @type {Weir} */
  let weir;
  beforeEach(async () => {
    weir = await Weir.start({ scenario: AT_ONCE });
  }, LIMIT);
  afterEach(() => weir?.stop());

  /**
   * @param {'lite' | 'full'} mode
   * @param {(run: import('./harness/codex.mjs').Ran) => any} saw
   * @param {unknown} [catalog]
   */
  async function execute(mode, saw, catalog) {
    const config = await snippet('codex.toml', weir);
    const run = saw(await runCodex({ config, model: MODEL, prompt: PROMPT, files: FILES, catalog }));
    assert.equal(run.code, 0, 'Codex ends well');
    const requests = await weir.recordSince(0, (all) => all.some(({ body }) => outputs(body).length === 2));
    for (const request of requests) assert.equal(request.outcome, 'completed', `request ${request.number}`);
    for (const { body } of requests) assert.ok(!offeredTools(body).includes('web_search'), 'no hosted search');
    const history = requests[requests.length - 1].body;
    assertBooked(history, EMITTED);
    const answers = run.events.filter(({ type, item }) => type === 'item.completed' && item.type === 'agent_message');
    assert.equal(answers.length, 1);
    assert.match(answers[0].item.text, /practice/i);
    return { run, requests, history };
  }

  /**
   * @param {'lite' | 'full'} mode
   * @param {Awaited<ReturnType<typeof execute>>} result
   */
  const book = (mode, { run, requests }) =>
    addRow({
      client: 'Codex CLI',
      mode,
      work: '2 commands',
      parentTurns: requests.length,
      atOnce: FILES.every((name) => run.files[name] === 'yes\n') ? 2 : 1,
      parentBytes: bytesRead(requests),
      totalBytes: bytes(requests),
      seconds: run.seconds,
    });

  test('auto resolves to Lite: two responses with one call each', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const result = await execute('lite', saw);
      await book('lite', result);
      assertLite(result.requests);
      assert.equal(result.requests.length, 3);
      assertOneCallPerTurn(result.history);
      assert.deepEqual(result.run.files, { 'left-saw-right': 'no\n', 'right-saw-left': 'yes\n' });
    }),
  );

  test('full: one response with both calls', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      await weir.command('mode', MODEL, 'full');
      const result = await execute('full', saw);
      await book('full', result);
      assertFull(result.requests, { parallelToolCalls: true });
      assertOffersAtTopLevel(result.requests[0], 'exec_command');
      assert.equal(result.requests.length, 2);
      assertCallsBeforeOutputs(result.history);
      assert.deepEqual(result.run.files, { 'left-saw-right': 'yes\n', 'right-saw-left': 'yes\n' });
    }),
  );

  test('a Codex that speaks Lite by its own catalog is still served in full', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const catalog = await weir.codexCatalog();
      assert.equal(catalog.models.find(({ slug }) => slug === MODEL).use_responses_lite, true);
      await weir.command('mode', MODEL, 'full');
      const result = await execute('full', saw, catalog);
      assertFull(result.requests, { parallelToolCalls: undefined });
      assertOffersAtTopLevel(result.requests[0], 'exec_command');
      assert.equal(result.requests.length, 2);
      assert.deepEqual(result.run.files, { 'left-saw-right': 'yes\n', 'right-saw-left': 'yes\n' });
    }),
  );

  test('a Codex that speaks Lite by its own catalog keeps its form in Lite', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const result = await execute('lite', saw, await weir.codexCatalog());
      assertLite(result.requests);
      assert.equal(result.requests.length, 3);
      const [carried] = result.requests[0].body.input;
      assert.equal(carried.tools[0].name, 'functions', 'its own namespace');
      assert.deepEqual(result.run.files, { 'left-saw-right': 'no\n', 'right-saw-left': 'yes\n' });
    }),
  );

  test('a hosted tool in Lite is refused at once, with the way out, and nothing goes upstream', LIMIT, (t) =>
    withEvidence(t, weir, async (saw) => {
      const config = (await snippet('codex.toml', weir)).replace('web_search = "disabled"', '');
      const run = saw(await runCodex({ config, model: MODEL, prompt: 'Hello', files: [] }));
      assert.equal(run.code, 1);
      const errors = run.events.filter(({ type }) => type === 'error');
      assert.equal(errors.length, 1, 'Codex does not try again');
      assert.match(errors[0].message, /web_search.*weir mode practice-lite full/);
      assert.deepEqual(await weir.recordSince(0, () => true), []);
    }),
  );
});
