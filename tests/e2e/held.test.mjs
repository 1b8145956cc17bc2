/**
 * The connection that a conversation keeps, with the real clients: twenty turns of one conversation over a held
 * WebSocket, and the same twenty over SSE.
 *
 * Lite makes twenty turns of nineteen calls. That every turn after the first is a delta says that what the client gives
 * back of the model's items is recognised as what the model wrote.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runCodex } from './harness/codex.mjs';
import { withEvidence } from './harness/evidence.mjs';
import { runOpenCode } from './harness/opencode.mjs';
import { bytes, calls, offeredTools, outputs } from './harness/record.mjs';
import { snippet } from './harness/snippets.mjs';
import { addRoad } from './harness/table.mjs';
import { Weir } from './harness/weir.mjs';

const MODEL = 'practice-lite';
const LIMIT = { timeout: 120_000 };
const CALLS = 19;

/**
 * @param {string} tool
 * @param {(n: number) => object} input of the n-th call
 */
const longTalk = (tool, input) => {
  const made = Array.from({ length: CALLS }, (_, n) => {
    const text = JSON.stringify(JSON.stringify(input(n)));
    return `{ name = "${tool}", arguments = ${text} }`;
  });
  return `pace = 0.0\n\n[[rule]]\nwhen = { tool = "${tool}" }\nreply = { text = "all done", calls = [${made.join(', ')}] }\n`;
};

/** A backend that speaks no WebSocket. */
const NO_SOCKETS = '\n[[rule]]\nreply = { ws_refuse = 426 }\n';

const CLIENTS = {
  OpenCode: {
    tool: 'bash',
    input: (/** @type {number} */ n) => ({ command: `echo line ${n}`, description: 'Prints a line' }),
    run: async (/** @type {Weir} */ weir) => {
      const run = await runOpenCode({ config: await snippet('opencode.json', weir), model: MODEL, prompt: 'Talk.' });
      return { ...run, said: run.answer };
    },
  },
  'Codex CLI': {
    tool: 'exec_command',
    input: (/** @type {number} */ n) => ({ cmd: `echo line ${n}` }),
    run: async (/** @type {Weir} */ weir) => {
      const run = await runCodex({ config: await snippet('codex.toml', weir), model: MODEL, prompt: 'Talk.', files: [] });
      return { ...run, said: run.events.findLast(({ item }) => item?.type === 'agent_message')?.item.text };
    },
  },
};

for (const [client, { tool, input, run }] of Object.entries(CLIENTS)) {
  describe(`${client} talks for twenty turns`, () => {
    /** @param {'SSE' | 'held'} road */
    const talk = (road) => async (/** @type {import('node:test').TestContext} */ t) => {
      const weir = await Weir.start({ scenario: longTalk(tool, input) + (road === 'SSE' ? NO_SOCKETS : '') });
      try {
        await withEvidence(t, weir, async (saw) => {
          const ran = saw(await run(weir));
          assert.equal(ran.code, 0);
          assert.match(ran.said, /all done/);
          const all = await weir.recordSince(0, (seen) => seen.some(({ body }) => outputs(body).length === CALLS));
          const turns = all.filter(({ body }) => offeredTools(body).includes(tool));
          assert.equal(turns.length, CALLS + 1);
          assert.equal(calls(turns[CALLS].body).length, CALLS, 'the model has seen every call');
          const deltas = turns.filter((turn) => turn.input_items < turn.history_items);
          const journal = JSON.parse(await weir.command('turns', '--json', '--limit', '50')).turns;
          if (road === 'held') {
            for (const turn of turns.slice(1))
              assert.ok(turn.input_items < turn.history_items, `request ${turn.number} repeats what is known`);
            assert.equal(new Set(turns.map(({ socket }) => socket)).size, 1, 'one connection');
            const told = journal.filter((turn) => turn.new_items !== null);
            assert.equal(told.length, CALLS, 'the journal says the same');
          } else {
            assert.equal(deltas.length, 0);
            assert.ok(turns.every(({ transport }) => transport === 'http'));
          }
          const ours = journal.filter((turn) => turn.input_items >= turns[0].history_items);
          const sum = (/** @type {string} */ name) => ours.reduce((total, turn) => total + turn[name], 0);
          const cachedShare = (100 * sum('cached_tokens')) / sum('input_tokens');
          await addRoad({ client, road, turns: turns.length, deltas: deltas.length, sent: bytes(turns), cachedShare });
        });
      } finally {
        await weir.stop();
      }
    };

    test('over SSE: every turn says everything', LIMIT, talk('SSE'));
    test('over its connection: every turn after the first says what is new', LIMIT, talk('held'));
  });
}
