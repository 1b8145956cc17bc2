/**
 * The released OpenCode, run once against a program that somebody else has started: for tests that are not written for
 * node. Prints the answer and ends with OpenCode's code.
 *
 *     node harness/once.mjs BASE_URL KEY MODEL PROMPT
 */
import { tail } from './process.mjs';
import { runOpenCode } from './opencode.mjs';
import { snippet } from './snippets.mjs';

const [baseUrl, key, model, prompt] = process.argv.slice(2);
const config = await snippet('opencode.json', { baseUrl, key });
const { code, answer, trace } = await runOpenCode({ config, model, prompt });
if (code !== 0) process.stderr.write(tail(trace));
process.stdout.write(`${answer}\n`);
process.exitCode = code;
