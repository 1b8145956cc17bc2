#!/usr/bin/env bash
# Builds the desktop program and packs it, with the headless one, into a Debian package. Prints the package's path last.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(scripts/target-dir.sh)
out="$target/debug/bundle/deb"
scripts/place-headless.sh
cargo build --locked -p weir-desktop
rm -rf "$out"
# The bundler reads `CI` as a switch and refuses a value like 1, which build machines do set.
CI=true ui/node_modules/.bin/tauri bundle --debug --bundles deb

packages=("$out"/*.deb)
dpkg-deb -c "${packages[0]}" | grep 'usr/bin/.'
echo "${packages[0]}"
