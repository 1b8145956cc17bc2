#!/usr/bin/env bash
# Starts the desktop program out of its package and uses it as a user would: tray, menu, window, a second start, the end,
# and desktops that lack something. Runs on a display without a screen, with a home and a session bus of its own. What is
# tried stands in scripts/desktop-smoke/run.py. Prints 'N passed, N failed'; leaves pictures in the target folder.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in Xvfb dbus-run-session gdbus openbox xfce4-panel xdotool import identify xprop xclip WebKitWebDriver curl node python3; do
  command -v "$program" >/dev/null || missing+=("$program")
done
if [[ -n ${missing:-} ]]; then
  echo "The desktop's test needs: ${missing[*]}" >&2
  echo "On Debian: apt-get install xvfb dbus openbox xfce4-panel xdotool imagemagick x11-utils xclip webkit2gtk-driver libglib2.0-bin curl python3" >&2
  exit 1
fi

[[ -d tests/e2e/node_modules ]] || { echo 'The clients are not installed; npm --prefix tests/e2e ci does it.' >&2; exit 1; }

target=$(scripts/target-dir.sh)
package=$(find "$target/debug/bundle/deb" -maxdepth 1 -name '*.deb' 2>/dev/null | head -n 1)
[[ -n $package ]] || { echo 'There is no package yet; scripts/bundle.sh makes it.' >&2; exit 1; }

work=$(mktemp -d)
undo=(rm -rf "$work")
installed=
# Another program may hold the package database for a while, and dpkg does not wait for it.
packages() {
  local n
  for n in {1..60}; do
    dpkg "$@" >/dev/null 2>"$work/dpkg.log" && return
    grep -q 'lock' "$work/dpkg.log" || break
    sleep 2
  done
  cat "$work/dpkg.log" >&2
  return 1
}
cleanup() {
  [[ -z ${server:-} ]] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  [[ -z $installed ]] || packages -r "$installed"
  "${undo[@]}"
}
trap cleanup EXIT

# As root the package is installed, used and removed, unless its name is taken on this machine; else it is unpacked.
name=$(dpkg-deb -f "$package" Package)
if [[ $EUID -eq 0 && -z ${WEIR_SMOKE_UNPACK:-} ]] && ! dpkg -s "$name" >/dev/null 2>&1 &&
  [[ ! -e /usr/bin/weir && ! -e /usr/bin/weir-desktop ]]; then
  installed=$name
  packages -i "$package"
  export WEIR_PROGRAMS=/usr/bin
  echo "installed $name from ${package##*/}"
else
  dpkg-deb -x "$package" "$work/unpacked"
  export WEIR_PROGRAMS="$work/unpacked/usr/bin"
  echo "unpacked ${package##*/}"
fi

export WEIR_PICTURES="$target/desktop-smoke" WEIR_WORK="$work"
mkdir -p "$WEIR_PICTURES" "$work/run" "$work/home"
chmod 700 "$work/run"
export HOME="$work/home" XDG_RUNTIME_DIR="$work/run" XDG_CONFIG_HOME="$work/home/config" XDG_DATA_HOME="$work/home/data" \
  XDG_CACHE_HOME="$work/home/cache" GDK_BACKEND=x11 LANG=C NO_AT_BRIDGE=1
# A display without a screen has no graphics card either, and then the web engine's compositor draws with Mesa's software
# rasteriser, which now and then takes the page's process down with it (a protection fault in swrast_dri.so).
export WEBKIT_DISABLE_COMPOSITING_MODE=1
unset WAYLAND_DISPLAY XAUTHORITY WEIR_DATA

# The server itself picks a display number that is free, and says which.
mkfifo "$work/display"
Xvfb -displayfd 3 -screen 0 1280x900x24 -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
server=$!
if ! read -r -t 60 display <"$work/display"; then
  echo 'Xvfb does not start:' >&2
  cat "$work/xvfb.log" >&2
  exit 1
fi
export DISPLAY=":$display"

result=0
timeout 1800 dbus-run-session -- python3 scripts/desktop-smoke/run.py || result=$?
if [[ -n $installed ]]; then
  packages -r "$installed"
  installed=
  if [[ -e /usr/bin/weir || -e /usr/bin/weir-desktop ]]; then
    echo 'FAIL  the package leaves its programs behind' && result=1
  else
    echo 'ok    the package is removed, with both programs'
  fi
fi
exit "$result"
