#!/usr/bin/env bash
# Prints the folder that Cargo builds into, as an absolute path.
set -euo pipefail
cd "$(dirname "$0")/.."
realpath -m "${CARGO_TARGET_DIR:-target}"
