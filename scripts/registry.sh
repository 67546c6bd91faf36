#!/bin/sh
# Puts Debian's `docker-registry` beside the tests' interpreter, for the tests of push and pull; nothing is installed.
set -eu
cd "$(dirname "$0")/.."

program=.venv/bin/docker-registry
command -v docker-registry >/dev/null && exit 0
[ -x $program ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
download() { (cd "$work" && apt-get -qq download docker-registry >/dev/null 2>&1); }
# A fresh machine may know no package yet.
if ! { download || { apt-get -qq update >/dev/null 2>&1 && download; }; } || ! (cd "$work" && dpkg -x docker-registry_*.deb tree); then
    echo "registry: apt-get could not fetch docker-registry; the tests that need it are skipped" >&2
    exit 1
fi
cp "$work/tree/usr/bin/docker-registry" $program
echo "registry: $($program --version)"
