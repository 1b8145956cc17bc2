#!/usr/bin/env bash
# Opens the built page in a real browser, with an invented program behind it and the strictest content policy, and reads
# what the browser made of it. Prints 'N passed, N failed'.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=
for name in chromium google-chrome chromium-browser; do
  if command -v "$name" >/dev/null; then browser=$name && break; fi
done
[[ -n $browser ]] || { echo "There is no chromium; scripts/install-test-deps.sh brings it." >&2; exit 1; }

work=$(mktemp -d)
node ui/mock/server.mjs 0 >"$work/address" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT

for _ in $(seq 100); do [[ -s $work/address ]] && break || sleep 0.1; done
address=$(<"$work/address")

look() {
  HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --enable-logging=stderr --virtual-time-budget=4000 --dump-dom "$1" >"$work/dom" 2>"$work/log" || true
}

passed=0 failed=0
check() {
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)) && echo "ok    $what"; else failed=$((failed + 1)) && echo "FAIL  $what"; fi
}
sees() { grep -qF -- "$1" "$work/dom"; }
quiet() { ! grep -F 'CONSOLE' "$work/log"; }

look "$address"
check 'the switch of every model is there' sees 'Serving mode of practice-full'
check 'siblings that ran together are counted' sees '3 at once'
check 'a missing number is a dash' sees '– used'
check 'neither the policy nor the page complained' quiet
look "${address%%#*}"
check 'without a key the page says what to do' sees 'weir open'
check 'and shows no facts' eval '! sees "Latest turns"'

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
