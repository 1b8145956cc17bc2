/**
 * A stream that dies after its last call is complete, with the real OpenCode: it starts a subagent as
 * soon as its call is complete, and would start it again with the turn that it repeats after a failure.
 * Three are wanted, three are launched.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withEvidence } from './harness/evidence.mjs';
import { runOpenCode, tasks } from './harness/opencode.mjs';
import { calls, outputs, turns } from './harness/record.mjs';
import { diesLate } from './harness/scenario.mjs';
import { snippet } from './harness/snippets.mjs';
import { Weir } from './harness/weir.mjs';

const MODEL = 'practice-full';
const LIMIT = { timeout: 120_000 };
const WORDS = ['alpha', 'bravo', 'charlie'];

const DEATHS = {
  'ends without a terminal event': 'no_terminal = true',
  'says that the backend failed': 'failed_event = { code = "server_error", message = "late" }',
  'says that a limit was reached': 'usage_limit_event = true',
};

for (const [death, ending] of Object.entries(DEATHS)) {
  describe(`a stream that ${death}, after three calls`, () => {
    /** @type {Weir} */
    let weir;

    before(async () => {
      weir = await Weir.start({ scenario: diesLate(WORDS, ending) });
    }, LIMIT);
    after(() => weir?.stop());

    test('three subagents, never six', LIMIT, (t) =>
      withEvidence(t, weir, async (saw) => {
        const config = await snippet('opencode.json', weir);
        const run = saw(await runOpenCode({ config, model: MODEL, prompt: 'Begin the late failure.' }));
        assert.equal(run.code, 0, 'OpenCode ends well');
        const requests = await weir.recordSince(0, (all) => all.some(({ body }) => outputs(body).length === 3));
        const { parent, children } = turns(requests);
        assert.equal(children.length, 3, 'one turn per subagent, each once');
        assert.equal(new Set(children.map(({ conversation }) => conversation)).size, 3);
        assert.deepEqual(
          tasks(run).map(({ status }) => status),
          WORDS.map(() => 'completed'),
        );
        assert.equal(parent.length, 2, 'the turn that died was not repeated');
        const history = parent[1].body;
        assert.equal(calls(history).length, 3);
        assert.equal(outputs(history).length, 3);
      }),
    );
  });
}
