import js from '@eslint/js'
import svelte from 'eslint-plugin-svelte'
import globals from 'globals'
import ts from 'typescript-eslint'
import svelteConfig from './svelte.config.js'

export default ts.config(
  // The contract is written by the program's tests, not by hand.
  { ignores: ['dist/', 'node_modules/', 'mock/out/', 'src/contract.ts'] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...ts.configs.stylistic,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-const': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig } },
    rules: {
      // The content security policy of the page is `default-src 'self'`.
      'svelte/no-inline-styles': ['error', { allowTransitions: false }],
      'svelte/no-at-html-tags': 'error',
      'svelte/require-each-key': 'error',
      'svelte/button-has-type': 'error',
    },
  },
  {
    files: ['*.js', '*.ts', 'mock/**', 'checks/**'],
    // What the checks evaluate inside a page runs in the browser.
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
    rules: { 'no-console': 'off' },
  },
)
