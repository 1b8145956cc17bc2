/**
 * The two forms in which a turn may leave, as assertions on what the upstream received.
 */
import assert from 'node:assert/strict';
import { calls, liteMarker, offeredTools, outputs } from './record.mjs';

/**
 * @param {import('./record.mjs').Received[]} requests every one must be a proper Lite turn
 */
export function assertLite(requests) {
  assert.ok(requests.length > 0);
  for (const request of requests) {
    const { body } = request;
    const where = `request ${request.number}`;
    assert.equal(liteMarker(request), 'true', `${where}: the marker`);
    assert.equal(request.lite, true, where);
    assert.equal(body.input[0].type, 'additional_tools', `${where}: tools lead the input`);
    assert.equal(body.input.filter((item) => item.type === 'additional_tools').length, 1, where);
    assert.ok(!('tools' in body), `${where}: no top-level tools`);
    assert.ok(!('instructions' in body), `${where}: no instructions`);
    assert.equal(body.parallel_tool_calls, false, `${where}: parallel_tool_calls`);
    assert.equal(body.reasoning.context, 'all_turns', `${where}: reasoning.context`);
  }
}

/**
 * @param {import('./record.mjs').Received[]} requests every one must be free of Lite
 * @param {{parallelToolCalls: true | undefined}} client what the client itself says, which must arrive as it is
 */
export function assertFull(requests, { parallelToolCalls }) {
  assert.ok(requests.length > 0);
  for (const request of requests) {
    const { body } = request;
    const where = `request ${request.number}`;
    assert.equal(liteMarker(request), undefined, `${where}: no marker`);
    assert.equal(request.lite, false, where);
    assert.ok(
      body.input.every((item) => item.type !== 'additional_tools'),
      `${where}: no tools in the input`,
    );
    assert.equal(body.reasoning?.context, undefined, `${where}: no reasoning.context`);
    assert.equal(body.parallel_tool_calls, parallelToolCalls, `${where}: parallel_tool_calls`);
    assert.equal('parallel_tool_calls' in body, parallelToolCalls !== undefined, where);
    assert.doesNotMatch(
      JSON.stringify(body.client_metadata ?? {}),
      /responses[-_]lite/,
      `${where}: no marker in the metadata`,
    );
  }
}

/**
 * Every call has exactly one output, and outputs come back in the order in which the model wrote
 * the calls.
 * @param {any} body of the last turn
 * @param {(string | RegExp)[]} emitted what identifies each call's arguments, in the model's order
 */
export function assertBooked(body, emitted) {
  const made = calls(body);
  assert.equal(made.length, emitted.length, 'calls in the history');
  made.forEach((call, i) => assert.match(call.arguments, new RegExp(emitted[i]), `call ${i + 1}`));
  const ids = made.map((call) => call.call_id);
  assert.equal(new Set(ids).size, ids.length, 'no call id twice');
  assert.deepEqual(
    outputs(body).map((output) => output.call_id),
    ids,
    'booked order is emitted order',
  );
}

/** @param {any} body all calls of one response stand before all of their outputs */
export function assertCallsBeforeOutputs(body) {
  const lastCall = body.input.indexOf(calls(body).at(-1));
  const firstOutput = body.input.indexOf(outputs(body)[0]);
  assert.ok(lastCall < firstOutput, 'all calls before all outputs');
}

/** @param {any} body each call is followed by its own output before the next is made */
export function assertOneCallPerTurn(body) {
  const kinds = body.input.map((item) => item.type ?? '').filter((type) => /_call(_output)?$/.test(type));
  const turns = kinds.length / 2;
  assert.deepEqual(kinds, Array.from({ length: turns }, () => ['function_call', 'function_call_output']).flat());
}

/**
 * @param {import('./record.mjs').Received} request
 * @param {string} tool
 */
export function assertOffersAtTopLevel({ body }, tool) {
  assert.ok(
    body.tools.some((offered) => offered.name === tool),
    `${tool} is a top-level tool`,
  );
  assert.ok(offeredTools(body).length === offeredTools({ ...body, input: [] }).length);
}
