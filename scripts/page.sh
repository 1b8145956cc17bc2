#!/usr/bin/env bash
# The page: `build` installs its packages and builds ui/dist, `check` looks for faults in it.
set -euo pipefail
cd "$(dirname "$0")/../ui"

case "${1:-}" in
  build)
    # npm keeps a copy of the lock file of what it has installed; nothing is downloaded again while that is newer.
    if [[ -n ${CI:-} || ! node_modules/.package-lock.json -nt package-lock.json ]]; then
      npm ci --no-audit --no-fund
    fi
    npm run build
    ;;
  check)
    npm run check
    npm run lint
    npm test
    ;;
  *)
    echo "usage: scripts/page.sh build|check" >&2
    exit 2
    ;;
esac
