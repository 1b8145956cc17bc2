/**
 * Scripts for the practice upstream.
 */

/** The built-in rules, without any pause for the eye. */
export const AT_ONCE = 'pace = 0.0\n';

/**
 * Subagents that answer with their word, the first slowest and the last fastest, so that answers
 * arrive against the order of the calls. In full none answers before all of its siblings are in
 * flight: that is a condition, not a pause, and a run without overlap would wait for ever. In Lite
 * the same subagents think as long, and wait for nobody.
 * @param {string[]} words in the order of the calls
 */
export function answersAgainstTheOrder(words) {
  const rules = words.flatMap((word, i) => {
    const prompt = JSON.stringify(`the single word ${word}`);
    const answer = `text = "${word}", think_ms = ${(words.length - i) * 100}`;
    return [
      '[[rule]]',
      `when = { prompt = ${prompt}, lite = false }`,
      `reply = { ${answer}, hold_until_in_flight = ${words.length} }`,
      '[[rule]]',
      `when = { prompt = ${prompt}, lite = true }`,
      `reply = { ${answer} }`,
    ];
  });
  return `pace = 1.0\n\n${rules.join('\n')}\n`;
}

/**
 * A parent whose first turn asks for a subagent per word and dies once all calls are complete. Only a
 * repeated turn would find the reply that does not die, and would start the subagents again.
 * @param {string[]} words in the order of the calls
 * @param {string} ending keys of the reply that dies
 */
export function diesLate(words, ending) {
  const calls = words.map((word) => {
    const args = { description: `Word ${word}`, prompt: `Reply with the single word ${word}`, subagent_type: 'general' };
    return `{ name = "task", arguments = ${JSON.stringify(JSON.stringify(args))} }`;
  });
  return [
    'pace = 0.0',
    '[[rule]]',
    'when = { prompt = "Begin the late failure", has_outputs = false, tool = "task" }',
    'replies = [',
    `  { calls = [${calls.join(', ')}], ${ending} },`,
    `  { calls = [${calls.join(', ')}] },`,
    ']',
    '',
  ].join('\n');
}
