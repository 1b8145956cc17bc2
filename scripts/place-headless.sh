#!/usr/bin/env bash
# Builds the headless program and puts it where the desktop's bundle takes it from: gen/bin/weir-<target triple>.
# Arguments are those of `cargo build`, such as --release.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked -p weir "$@"
profile=debug
for argument in "$@"; do [[ $argument == --release ]] && profile=release; done
triple=$(rustc -vV | sed -n 's/^host: //p')
suffix=
[[ $triple == *windows* ]] && suffix=.exe

built="$(scripts/target-dir.sh)/$profile/weir$suffix"
placed="gen/bin/weir-$triple$suffix"
mkdir -p gen/bin
# An unchanged program keeps its time, or the desktop would be built anew for nothing.
if ! cmp -s "$built" "$placed"; then cp "$built" "$placed"; fi
echo "$placed"
