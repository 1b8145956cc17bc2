/**
 * What the practice upstream received, and what can be said about it.
 *
 * Every assertion about bytes, order and overlap is made on this record, because it is taken on the
 * far side of the program: no client and no part of Weir can make it look better than it was.
 */

/**
 * One request of the record file, written when its response had ended.
 * @typedef {object} Received
 * @property {number} number counts from 1 in order of arrival
 * @property {string} path
 * @property {string | null} account
 * @property {[string, string][]} headers
 * @property {number} bytes length of the body, or of the frame
 * @property {any} sent the body or the frame
 * @property {any} body the whole request: of a frame, with the history that its connection held
 * @property {'http' | 'ws'} transport
 * @property {number | null} socket of a frame
 * @property {number} input_items sent
 * @property {number} history_items that they stand for
 * @property {string} model
 * @property {boolean} lite
 * @property {string | null} conversation
 * @property {string | null} parent
 * @property {number} arrived_ms
 * @property {number | null} ended_ms
 * @property {number} in_flight
 * @property {number} status
 * @property {string} outcome
 */

const LITE_MARKER = 'x-openai-internal-codex-responses-lite';
/** The same in a frame, which has no headers of its own. */
const LITE_METADATA = 'ws_request_header_x_openai_internal_codex_responses_lite';

/**
 * @param {string} text JSON lines; a last line without its end is still being written
 * @returns {Received[]} in order of arrival
 */
export function parseRecord(text) {
  const lines = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean);
  const requests = lines.map((line) => JSON.parse(line)).map((r) => ({ ...r, sent: r.body, body: r.whole ?? r.body }));
  return requests.sort((a, b) => a.number - b.number);
}

/** @param {Received} request @returns {string | undefined} the value of the marker of a Lite turn, wherever it is said */
export const liteMarker = ({ headers, sent }) =>
  headers.find(([name]) => name.toLowerCase() === LITE_MARKER)?.[1] ?? sent?.client_metadata?.[LITE_METADATA];

/**
 * A handshake that was refused; an accepted one is recorded by its frames.
 * @param {Received} request
 */
export const isHandshake = ({ transport, socket }) => transport === 'ws' && socket === null;

/**
 * Names of the tools that a body offers, wherever its dialect puts them, out of their namespaces.
 * @param {any} body
 * @returns {string[]}
 */
export function offeredTools(body) {
  const carried = body.input.filter((item) => item.type === 'additional_tools').flatMap((item) => item.tools ?? []);
  return [...(body.tools ?? []), ...carried].flatMap((tool) =>
    tool.type === 'namespace' ? tool.tools.map((inner) => inner.name) : [tool.name ?? tool.type],
  );
}

/**
 * Sorts the turns of one OpenCode session by what they offer: only the parent may launch subagents,
 * and a turn without tools is the client's own errand (a title).
 * @param {Received[]} requests
 */
export function turns(requests) {
  const offers = requests.map((request) => ({ request, tools: offeredTools(request.body) }));
  const those = (/** @type {(tools: string[]) => boolean} */ which) =>
    offers.filter(({ tools }) => which(tools)).map(({ request }) => request);
  return {
    parent: those((tools) => tools.includes('task')),
    children: those((tools) => tools.length > 0 && !tools.includes('task')),
    errands: those((tools) => tools.length === 0),
  };
}

/** @param {any} body @returns {any[]} */
export const calls = (body) => body.input.filter((item) => /_call$/.test(item.type ?? ''));

/** @param {any} body @returns {any[]} */
export const outputs = (body) => body.input.filter((item) => /_call_output$/.test(item.type ?? ''));

/**
 * The most intervals that are open at one instant. One that ends as another starts does not
 * overlap it.
 * @param {{start: number, end: number}[]} intervals
 */
export function mostAtOnce(intervals) {
  const edges = intervals.flatMap(({ start, end }) => [
    { at: start, step: 1 },
    { at: end, step: -1 },
  ]);
  edges.sort((a, b) => a.at - b.at || a.step - b.step);
  let open = 0;
  let most = 0;
  for (const { step } of edges) {
    open += step;
    most = Math.max(most, open);
  }
  return most;
}

/** @param {Received[]} requests */
export const upstreamIntervals = (requests) =>
  requests.map(({ arrived_ms, ended_ms }) => ({ start: arrived_ms, end: ended_ms ?? Infinity }));

/** What was sent. @param {Received[]} requests */
export const bytes = (requests) => requests.reduce((sum, request) => sum + request.bytes, 0);

/** What the model had to read, whether it was sent or held by the connection. @param {Received[]} requests */
export const bytesRead = (requests) => requests.reduce((sum, { body }) => sum + JSON.stringify(body).length, 0);

/**
 * The record in a few lines, for a failure report.
 * @param {Received[]} requests
 */
export function outline(requests) {
  return requests
    .map((r) => {
      const input = Array.isArray(r.body?.input) ? r.body.input.map((item) => item.type ?? item.role).join(' ') : '';
      const span = `${r.arrived_ms}..${r.ended_ms ?? '?'} ms`;
      const who = `${r.conversation}${r.parent ? ` child of ${r.parent}` : ''}`;
      return `#${r.number} ${r.status} ${r.outcome} lite=${r.lite} ${r.bytes} B ${span} ${who} in_flight=${r.in_flight} [${input}]`;
    })
    .join('\n');
}
