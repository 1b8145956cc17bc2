#!/usr/bin/env bash
# Sees to it that the system packages for the tests are there. Installs them where it may (root or sudo, on Debian or
# Ubuntu), otherwise names what is missing and stops. `--list` only prints the names.
set -euo pipefail

# To build: a C compiler for SQLite and the TLS library, the web engine, D-Bus, and the tray's library, which the bundler
# asks pkg-config for.
build=(build-essential pkg-config libwebkit2gtk-4.1-dev libdbus-1-dev libayatana-appindicator3-dev)
# To try the desktop program: a display without a screen, a session bus, a window manager, a panel, hands and eyes.
desktop=(xvfb xauth dbus openbox xfce4-panel webkit2gtk-driver xclip procps python3 curl libglib2.0-bin imagemagick xdotool fonts-dejavu-core adwaita-icon-theme)
# To try the page, and the clients end to end.
page=(chromium git ca-certificates)

packages=("${build[@]}" "${desktop[@]}" "${page[@]}")
if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${packages[@]}"
  exit
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "The tests need what Debian calls: ${packages[*]}" >&2
  echo "This system has no apt-get, so the tests stop here; the pure parts run with: cargo test" >&2
  exit 1
fi

# Ubuntu's chromium is a snap; a browser that is already there under another name does as well.
if command -v chromium google-chrome chromium-browser >/dev/null; then
  kept=()
  for name in "${packages[@]}"; do [[ $name == chromium ]] || kept+=("$name"); done
  packages=("${kept[@]}")
fi

missing=()
for name in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$name")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "All ${#packages[@]} packages are there."
  exit
fi

become=()
if [[ $EUID -ne 0 ]]; then
  if ! sudo -n true 2>/dev/null; then
    echo "Missing: ${missing[*]}" >&2
    echo "Install them with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  become=(sudo -n)
fi
export DEBIAN_FRONTEND=noninteractive
"${become[@]}" apt-get update -qq
"${become[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "Installed: ${missing[*]}"
