#!/usr/bin/env bash
# Starts the desktop program out of its unpacked package: on a display without a screen, with a session bus and a home of
# its own. Looks at the window, closes it, opens it again from the tray's menu and quits there, as a user would.
# Prints 'N passed, N failed'; leaves a picture of the window in the target folder.
set -euo pipefail

deadline=60 # seconds that any single condition may take to come true

passed=0 failed=0
check() {
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)) && echo "ok    $what"; else failed=$((failed + 1)) && echo "FAIL  $what"; fi
}

# Asks again until the command succeeds or the deadline is over.
until_true() {
  local end=$((SECONDS + deadline))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

outside() {
  cd "$(dirname "$0")/.."
  local target work display
  target=$(scripts/target-dir.sh)
  export WEIR_UNPACKED="$target/debug/bundle/deb/unpacked" WEIR_PICTURE="$target/desktop-smoke.png"
  work=$(mktemp -d)
  mkdir -m 700 "$work/run"
  export HOME="$work" XDG_RUNTIME_DIR="$work/run" XDG_CONFIG_HOME="$work/config" XDG_DATA_HOME="$work/data" \
    XDG_CACHE_HOME="$work/cache" GDK_BACKEND=x11 LANG=C NO_AT_BRIDGE=1
  unset WAYLAND_DISPLAY XAUTHORITY

  # The server itself picks a display number that is free, and says which.
  mkfifo "$work/display"
  Xvfb -displayfd 3 -screen 0 1280x900x24 -nolisten tcp 3>"$work/display" 2>"$work/xvfb.log" &
  local server=$!
  trap 'kill '"$server"' 2>/dev/null || true; wait '"$server"' 2>/dev/null || true; rm -rf '"'$work'" EXIT
  if ! read -r -t "$deadline" display <"$work/display"; then
    echo "Xvfb does not start:" >&2
    cat "$work/xvfb.log" >&2
    exit 1
  fi
  DISPLAY=":$display" timeout 300 dbus-run-session -- "$BASH" "$0" inside
}

# Prints one window's id. A window manager that takes a window over hides it for a moment, hence callers ask again.
window() { timeout 20 xdotool search --onlyvisible --name '^Weir$' | head -n 1 | grep .; }
no_window() { ! window; }
running() { kill -0 "$program" 2>/dev/null; }

# A page that failed to start is one flat colour; the real one has hundreds.
drawn() {
  local id
  id=$(window) || return 1
  timeout 20 import -window "$id" "$WEIR_PICTURE" && [[ $(identify -format '%k' "$WEIR_PICTURE") -ge 64 ]]
}

# The tray's menu lives on the session bus, whether or not a panel shows it.
bus() { gdbus call --session --timeout 10 "$@"; }
menu_owner() {
  local name
  for name in $(bus --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus \
    --method org.freedesktop.DBus.ListNames | grep -o ':1\.[0-9]*'); do
    if bus --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus \
      --method org.freedesktop.DBus.GetConnectionUnixProcessID "$name" 2>/dev/null | grep -q "uint32 $program,"; then
      menu_path=$(gdbus introspect --session --recurse --only-properties --dest "$name" \
        --object-path /org/ayatana/NotificationItem 2>/dev/null | grep -o '/org/ayatana/[^ ]*/Menu' | head -n 1)
      if [[ -n $menu_path ]]; then menu_name=$name && return 0; fi
    fi
  done
  return 1
}
menu() {
  bus --dest "$menu_name" --object-path "$menu_path" --method com.canonical.dbusmenu.GetLayout -- 0 -1 '[]'
}
choose() {
  local id
  id=$(menu | grep -oP "\\((\\d+), \\{[^{}]*'label': <'$1'>" | grep -oP '^\(\K\d+')
  bus --dest "$menu_name" --object-path "$menu_path" --method com.canonical.dbusmenu.Event -- \
    "$id" clicked '<int32 0>' 0 >/dev/null
}
close_window() {
  timeout 20 xdotool windowactivate --sync "$(window)" key --clearmodifiers alt+F4
}

inside() {
  check 'the package holds both programs' test -x "$WEIR_UNPACKED/usr/bin/weir" -a -x "$WEIR_UNPACKED/usr/bin/weir-desktop"
  check 'the headless program starts out of it' "$WEIR_UNPACKED/usr/bin/weir" --version

  openbox >/dev/null 2>&1 &
  manager=$!
  until_true timeout 20 xdotool get_num_desktops || true
  "$WEIR_UNPACKED/usr/bin/weir-desktop" >"$HOME/program.log" 2>&1 &
  program=$!
  trap 'kill $program $manager 2>/dev/null || true' EXIT

  check 'the window appears' until_true window
  check 'the page is drawn' until_true drawn
  check 'the tray has a menu' until_true menu_owner
  menu_owner || true
  close_window || true
  check 'closing the window takes it away' until_true no_window
  check 'and leaves the program running' running
  check 'the menu opens the window again' choose 'Open Weir'
  check 'it appears again' until_true window
  check 'the menu quits' choose 'Quit Weir'
  check 'the program has gone' until_true eval '! running'
  local code=0
  if running; then kill "$program"; fi
  wait "$program" || code=$?
  check "its exit code is 0 (it is $code)" test "$code" -eq 0

  if [[ $failed -gt 0 ]]; then
    echo 'What the program said:'
    tail -n 40 "$HOME/program.log"
  fi
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}

program=0 manager=0 menu_name= menu_path=
if [[ ${1:-} == inside ]]; then inside; else outside; fi
