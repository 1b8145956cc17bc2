#!/usr/bin/env bash
# Opens the page in a real browser: with an invented program behind it, and as it is built into the real one, which must
# have been built after the page, with the real OpenCode beside it. WEIR_BIN names the program; else it is the debug build.
set -euo pipefail
cd "$(dirname "$0")/.."

WEIR_BIN="${WEIR_BIN:-$(scripts/target-dir.sh)/debug/weir}"
export WEIR_BIN
if [[ ! -x $WEIR_BIN ]]; then
  echo "There is no $WEIR_BIN; build the page and then the program: scripts/page.sh build && cargo build -p weir" >&2
  exit 1
fi
[[ -d tests/e2e/node_modules ]] || { echo "The clients are not installed; npm --prefix tests/e2e ci does it." >&2; exit 1; }
[[ -f ui/dist/index.html ]] || { echo "The page is not built; scripts/page.sh build does it." >&2; exit 1; }

cd ui
exec node --test --test-concurrency=1 --test-reporter=spec checks/*.smoke.mjs
