#!/bin/sh
# Makes bubblewrap available on this machine (`make setup`); does nothing where it is.
set -eu

if found=$(command -v bwrap); then
    echo "bubblewrap: $("$found" --version) is here"
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bubblewrap: installing it"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get -qq update >/dev/null && apt-get -qq install -y --no-install-recommends bubblewrap >/dev/null; then
        bwrap --version
        exit 0
    fi
    echo "bubblewrap: apt-get could not install it" >&2
    exit 1
fi
echo "bubblewrap is missing, and this user may not install it. Run one of" >&2
echo "  sudo apt-get install -y bubblewrap        (Debian, Ubuntu)" >&2
echo "  sudo dnf install -y bubblewrap            (Fedora)" >&2
exit 1
