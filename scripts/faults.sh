#!/usr/bin/env bash
# Builds the program and the fault harness as `make test` builds them, proves the checker, and plays faults.
# Arguments are those of `weir-faults`; without any it plays 2,000 seeds. `--freeze`, which stops
# the program for a while, is for an otherwise idle machine: what a busy one delays looks the same.
set -euo pipefail
cd "$(dirname "$0")/.."

# One build for both, so that nothing is compiled twice with other features.
cargo build --locked -p weir -p weir-faults
built="$(scripts/target-dir.sh)/debug"
"$built/weir-faults" --weir "$built/weir" --prove
[[ $# -gt 0 ]] || set -- --count 2000
"$built/weir-faults" --weir "$built/weir" "$@"
