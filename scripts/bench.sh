#!/usr/bin/env bash
# Measures Weir beside no proxy and nginx, all on loopback, with an optimised build. Linux only.
#
#   scripts/bench.sh [--quick] [other options of weir-bench]
#
# nginx is installed where that is allowed (root or sudo, on Debian or Ubuntu); without it its column stays out. It runs
# from a folder and on a port of its own, so an nginx that is already there is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

nginx=$(PATH="$PATH:/usr/sbin" command -v nginx || true)
if [[ -z $nginx ]] && command -v apt-get >/dev/null; then
  as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo -n)
  if "${as_root[@]}" true 2>/dev/null; then
    "${as_root[@]}" apt-get update -qq || true
    # The package would start a server on port 80; nothing here needs it.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
      apt-get install -y -qq --no-install-recommends nginx-light >/dev/null || true
    nginx=$(PATH="$PATH:/usr/sbin" command -v nginx || true)
  fi
fi
[[ -n $nginx ]] || echo 'nginx is not installed, so there is nothing to compare with.' >&2

# Five hundred streams are three sockets each in one of the processes.
ulimit -n 8192 2>/dev/null || ulimit -n "$(ulimit -Hn)"

target=$(scripts/target-dir.sh)
cargo build --release --locked -p weir -p weir-bench
echo "Load before: $(cut -d' ' -f1-3 /proc/loadavg). On a machine that does other work the figures mean little." >&2
"$target/release/weir-bench" --weir "$target/release/weir" ${nginx:+--nginx "$nginx"} \
  --json "$target/bench.json" "$@"
