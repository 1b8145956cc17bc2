#!/usr/bin/env bash
# Runs every check, what fails fastest first, and stops at the first that fails. The totals that each test runner
# prints stay visible; the table at the end says what ran and how long it took.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
target=$(scripts/target-dir.sh)
names=() times=()
begun=$SECONDS
current=

step() {
  current=$1
  shift
  printf '\n==> %s\n' "$current"
  local from=$SECONDS
  "$@"
  names+=("$current") times+=($((SECONDS - from)))
  current=
}

closing() {
  local status=$? i
  printf '\n%-52s %9s\n' step seconds
  for i in "${!names[@]}"; do printf '%-52s %9d\n' "${names[i]}" "${times[i]}"; done
  printf '%-52s %9d\n' total $((SECONDS - begun))
  if [[ $status -eq 0 ]]; then
    printf '\nEverything passed.\n'
  else
    printf '\nStopped at: %s (exit code %d)\n' "${current:-before the first step}" "$status"
  fi
}
trap closing EXIT

e2e() {
  # The program under test is the one built above.
  WEIR_BIN="$target/debug/weir" npm --prefix tests/e2e test
}

step 'system packages' scripts/install-test-deps.sh
step 'formatting' cargo fmt --all --check
step 'licences' node scripts/licences.mjs
step 'page: install and build' scripts/page.sh build
step 'page: types, lint, tests' scripts/page.sh check
headless=(-p weir-core -p weir -p weir-faults -p weir-bench)
step 'headless: clippy' cargo clippy --locked "${headless[@]}" --all-targets -- -D warnings
step 'headless: tests' cargo test --locked "${headless[@]}"
step 'headless: program' scripts/place-headless.sh
step 'headless: faults' scripts/faults.sh --count 150
step 'clients: install' npm --prefix tests/e2e ci --no-audit --no-fund
step 'page: in a browser' scripts/page-smoke.sh
step 'clients end to end' e2e
step 'desktop: clippy' cargo clippy --locked -p weir-desktop --all-targets -- -D warnings
step 'desktop: tests' cargo test --locked -p weir-desktop
step 'desktop: package' scripts/bundle.sh
step 'desktop: started from the package' scripts/desktop-smoke.sh
