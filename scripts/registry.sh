#!/bin/sh
# Puts Debian's `docker-registry` beside the tests' interpreter, for the tests of push and pull; nothing is installed.
set -eu
cd "$(dirname "$0")/.."

program=.venv/bin/docker-registry
command -v docker-registry >/dev/null && exit 0
[ -x $program ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! (cd "$work" && apt-get -qq download docker-registry >/dev/null 2>&1 && dpkg -x docker-registry_*.deb tree); then
    echo "registry: apt-get could not fetch docker-registry; the tests that need it are skipped" >&2
    exit 1
fi
cp "$work/tree/usr/bin/docker-registry" $program
echo "registry: $($program --version)"
