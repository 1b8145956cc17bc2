#!/usr/bin/env bash
# Draws every icon that Tauri needs from icons/weir.svg. Run it after changing the drawing; the results are committed.
set -euo pipefail
cd "$(dirname "$0")/.."

all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
ui/node_modules/.bin/tauri icon icons/weir.svg --output "$all" >/dev/null 2>&1
# Phones and stores are left out: Weir is a tray application.
for name in 32x32.png 128x128.png 128x128@2x.png icon.icns icon.ico icon.png; do
  cp "$all/$name" icons/
done
ls -l icons
