#!/bin/sh
# Installs Debian's `chromium`, in which the tests open the page of a run; does nothing where a browser is.
set -eu

for name in chromium chromium-headless-shell google-chrome; do
    if found=$(command -v $name); then
        echo "chromium: $found is here"
        exit 0
    fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "chromium is missing, and this user may not install it; the tests that need it are skipped. Run" >&2
    echo "  sudo apt-get install -y --no-install-recommends chromium        (Debian)" >&2
    exit 1
fi
echo "chromium: installing it"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1; }
# A fresh machine may know no package yet.
if install || { apt-get -qq update >/dev/null 2>&1 && install; }; then
    chromium --version 2>/dev/null
    exit 0
fi
echo "chromium: apt-get could not install it; the tests that need it are skipped" >&2
exit 1
