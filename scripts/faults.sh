#!/usr/bin/env bash
# Builds the program and the fault harness as `make test` builds them, proves the checker, and plays faults.
# Arguments are those of `weir-faults`; without any it plays 2,000 seeds, and 250 more during
# which the program stands still for a while.
set -euo pipefail
cd "$(dirname "$0")/.."

# One build for both, so that nothing is compiled twice with other features.
cargo build --locked -p weir -p weir-faults
built="$(scripts/target-dir.sh)/debug"
"$built/weir-faults" --weir "$built/weir" --prove
if [[ $# -eq 0 ]]; then
  "$built/weir-faults" --weir "$built/weir" --freeze --seed 100000 --count 250
  set -- --count 2000
fi
"$built/weir-faults" --weir "$built/weir" "$@"
