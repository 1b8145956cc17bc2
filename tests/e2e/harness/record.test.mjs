/**
 * The judgements that every other test rests on must themselves be able to say no.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertBooked, assertCallsBeforeOutputs, assertFull, assertLite, assertOneCallPerTurn } from './dialect.mjs';
import { mostAtOnce, offeredTools, parseRecord, turns } from './record.mjs';
import { layOut } from './table.mjs';

/** @param {object} parts @returns {any} */
const request = (parts) => parts;

const call = (id, word) => ({
  type: 'function_call',
  call_id: id,
  name: 'task',
  arguments: JSON.stringify({ prompt: word }),
});
const output = (id) => ({ type: 'function_call_output', call_id: id, output: id });
const lite = request({
  number: 1,
  lite: true,
  headers: [['X-OpenAI-Internal-Codex-Responses-Lite', 'true']],
  body: {
    input: [{ type: 'additional_tools', tools: [{ type: 'function', name: 'task' }] }],
    parallel_tool_calls: false,
    reasoning: { context: 'all_turns' },
  },
});
const full = request({
  number: 2,
  lite: false,
  headers: [],
  body: { input: [], tools: [{ type: 'function', name: 'task' }] },
});

test('intervals that only touch do not overlap', () => {
  assert.equal(mostAtOnce([]), 0);
  assert.equal(
    mostAtOnce([
      { start: 0, end: 5 },
      { start: 5, end: 9 },
    ]),
    1,
  );
  assert.equal(
    mostAtOnce([
      { start: 0, end: 6 },
      { start: 5, end: 9 },
      { start: 8, end: 9 },
    ]),
    2,
  );
  assert.equal(
    mostAtOnce([
      { start: 0, end: Infinity },
      { start: 1, end: Infinity },
      { start: 2, end: 3 },
    ]),
    3,
  );
});

test('a record that is still being written is read up to its last whole line', () => {
  assert.deepEqual(
    parseRecord('{"number":2}\n{"number":1}\n{"num').map(({ number }) => number),
    [1, 2],
  );
  assert.deepEqual(parseRecord(''), []);
});

test('tools are found in both dialects and out of their namespace', () => {
  assert.deepEqual(offeredTools(full.body), ['task']);
  const nested = { type: 'namespace', name: 'functions', tools: [{ name: 'a' }, { name: 'b' }] };
  assert.deepEqual(offeredTools({ input: [{ type: 'additional_tools', tools: [nested, { type: 'tool_search' }] }] }), [
    'a',
    'b',
    'tool_search',
  ]);
});

test('only the parent offers subagents, and a turn without tools is an errand', () => {
  const offering = (/** @type {string[]} */ ...names) =>
    request({ body: { input: [], tools: names.map((name) => ({ type: 'function', name })) } });
  const sorted = turns([offering(), offering('bash', 'task'), lite, offering('bash')]);
  assert.deepEqual([sorted.errands.length, sorted.parent.length, sorted.children.length], [1, 2, 1]);
});

test('a body in the wrong dialect is refused', () => {
  assertLite([lite]);
  assertFull([full], { parallelToolCalls: undefined });
  assert.throws(() => assertLite([full]));
  assert.throws(() => assertFull([lite], { parallelToolCalls: undefined }));
  assert.throws(() => assertLite([]));
  for (const spoiled of [
    { ...lite, headers: [] },
    { ...lite, body: { ...lite.body, parallel_tool_calls: true } },
    { ...lite, body: { ...lite.body, tools: [] } },
    { ...lite, body: { ...lite.body, reasoning: {} } },
    { ...lite, body: { ...lite.body, input: [{ role: 'user' }, ...lite.body.input] } },
  ]) {
    assert.throws(() => assertLite([spoiled]));
  }
  for (const spoiled of [
    { ...full, headers: lite.headers },
    { ...full, body: { ...full.body, parallel_tool_calls: false } },
    { ...full, body: { ...full.body, input: lite.body.input } },
    { ...full, body: { ...full.body, reasoning: { context: 'all_turns' } } },
    {
      ...full,
      body: { ...full.body, client_metadata: { ws_request_header_x_openai_internal_codex_responses_lite: 'true' } },
    },
  ]) {
    assert.throws(() => assertFull([spoiled], { parallelToolCalls: undefined }));
  }
});

test('outputs in another order, twice or missing are refused', () => {
  const made = [call('1', 'alpha'), call('2', 'bravo')];
  const words = ['alpha', 'bravo'];
  assertBooked({ input: [...made, output('1'), output('2')] }, words);
  assertCallsBeforeOutputs({ input: [...made, output('1'), output('2')] });
  assertOneCallPerTurn({ input: [made[0], output('1'), made[1], output('2')] });
  assert.throws(() => assertBooked({ input: [...made, output('2'), output('1')] }, words));
  assert.throws(() => assertBooked({ input: [...made, output('1')] }, words));
  assert.throws(() => assertBooked({ input: [...made, output('1'), output('1')] }, words));
  assert.throws(() => assertBooked({ input: [...made.toReversed(), output('2'), output('1')] }, words));
  assert.throws(() => assertCallsBeforeOutputs({ input: [made[0], output('1'), made[1], output('2')] }));
  assert.throws(() => assertOneCallPerTurn({ input: [...made, output('1'), output('2')] }));
});

test('the table says that the backend is scripted', () => {
  /** @type {import('./table.mjs').Row} */
  const row = {
    client: 'c',
    mode: 'full',
    work: '3 subagents',
    parentTurns: 2,
    atOnce: 3,
    parentBytes: 60240,
    totalBytes: 130000,
    seconds: 5.84,
  };
  const lines = layOut([row]).split('\n');
  assert.match(lines[2], /^c {7}full {2}3 subagents +2 +3 +60,240 +130,000 +5\.8$/);
  assert.match(lines.at(-2) ?? '', /scripted/);
});
