/**
 * The complaint that Weir exists for, with the real OpenCode: one prompt that asks for several
 * subagents, on a model that the catalog marks as Lite, and the same again after one toggle.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  assertBooked,
  assertCallsBeforeOutputs,
  assertFull,
  assertLite,
  assertOffersAtTopLevel,
  assertOneCallPerTurn,
} from './harness/dialect.mjs';
import { withEvidence } from './harness/evidence.mjs';
import { runOpenCode, tasks } from './harness/opencode.mjs';
import { bytes, bytesRead, mostAtOnce, outputs, turns, upstreamIntervals } from './harness/record.mjs';
import { answersAgainstTheOrder } from './harness/scenario.mjs';
import { snippet } from './harness/snippets.mjs';
import { addRow } from './harness/table.mjs';
import { Weir } from './harness/weir.mjs';

const MODEL = 'practice-lite';
const LIMIT = { timeout: 120_000 };

/** The words that the practice upstream gives its subagents, in the order of its calls. */
const WORDS = ['alpha', 'bravo', 'charlie', 'delta', 'echo', 'foxtrot', 'golf', 'hotel', 'india', 'juliett'];

for (const count of [3, 8]) {
  describe(`OpenCode launches ${count} subagents`, () => {
    const words = WORDS.slice(0, count);
    const prompt = `Launch ${count} subagents, one for each word.`;
    /** @type {Weir} */
    let weir;
    /** @type {string} */
    let config;
    let liteParentBytes = 0;

    before(async () => {
      weir = await Weir.start({ scenario: answersAgainstTheOrder(words) });
      config = await snippet('opencode.json', weir);
    }, LIMIT);
    after(() => weir?.stop());

    /**
     * One run of the same prompt with the same configuration.
     * @param {'lite' | 'full'} mode
     * @param {(run: import('./harness/opencode.mjs').Ran) => any} saw
     */
    async function launch(mode, saw) {
      const mark = await weir.mark();
      const run = saw(await runOpenCode({ config, model: MODEL, prompt }));
      assert.equal(run.code, 0, 'OpenCode ends well');
      const requests = await weir.recordSince(mark, (all) => all.some(({ body }) => outputs(body).length === count));
      const { parent, children } = turns(requests);
      const row = {
        client: 'OpenCode',
        mode,
        work: `${count} subagents`,
        parentTurns: parent.length,
        atOnce: mostAtOnce(upstreamIntervals(children)),
        parentBytes: bytesRead(parent),
        totalBytes: bytes(requests),
        seconds: run.seconds,
      };
      await addRow(row);
      for (const { number, outcome } of [...parent, ...children])
        assert.equal(outcome, 'completed', `request ${number}`);
      assert.equal(children.length, count, 'one conversation per subagent');
      assert.equal(new Set(children.map(({ conversation }) => conversation)).size, count);
      for (const child of children) assert.equal(child.parent, parent[0].conversation, 'a subagent names its parent');
      assert.deepEqual(
        tasks(run).map(({ status }) => status),
        words.map(() => 'completed'),
      );
      for (const word of words) assert.match(run.answer, new RegExp(word), 'the answer quotes every subagent');
      const history = parent[parent.length - 1].body;
      assertBooked(history, words);
      outputs(history).forEach((output, i) => assert.match(output.output, new RegExp(words[i])));
      return { run, requests, parent, row, history };
    }

    test(`auto resolves to Lite: one after another, ${count + 1} turns`, LIMIT, (t) =>
      withEvidence(t, weir, async (saw) => {
        const { run, requests, row, history } = await launch('lite', saw);
        assertLite(requests);
        assertOneCallPerTurn(history);
        assert.equal(row.parentTurns, count + 1);
        assert.equal(row.atOnce, 1, 'never two subagents at once upstream');
        assert.equal(mostAtOnce(tasks(run)), 1, 'nor in the eyes of OpenCode');
        liteParentBytes = row.parentBytes;
      }),
    );

    test('the same model set to full: all together, 2 turns', LIMIT, (t) =>
      withEvidence(t, weir, async (saw) => {
        await weir.command('mode', MODEL, 'full');
        const { run, requests, parent, row, history } = await launch('full', saw);
        assertFull(requests, { parallelToolCalls: undefined });
        assertOffersAtTopLevel(parent[0], 'task');
        assertCallsBeforeOutputs(history);
        assert.equal(row.parentTurns, 2);
        assert.equal(row.atOnce, count, 'all subagents at once upstream');
        assert.equal(mostAtOnce(tasks(run)), count, 'and in the eyes of OpenCode');

        assert.ok(liteParentBytes > 0, 'needs the numbers of the Lite run');
        const share = row.parentBytes / liteParentBytes;
        const expected = 2 / (count + 1);
        assert.ok(
          Math.abs(share - expected) < 0.1,
          `the parent's model reads ${share.toFixed(2)} of the bytes, expected about ${expected.toFixed(2)}`,
        );
      }),
    );
  });
}
