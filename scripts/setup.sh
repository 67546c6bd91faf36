#!/bin/sh
# Sets up everything a newcomer needs: the virtual environment with the package, bubblewrap, the example's data.
# A second call finds it all there and takes a moment.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.hermit-setup
wanted=$(cat pyproject.toml scripts/setup.sh hermit/__init__.py | sha256sum)

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: Python 3.11 or newer is needed as python3; found: $(python3 --version 2>&1 || echo none)" >&2
    echo "  -> install it, or put it first on the PATH" >&2
    exit 2
fi

if [ ! -x $venv/bin/pip ]; then
    rm -rf $venv
    if ! python3 -c 'import ensurepip' 2>/dev/null; then
        # Debian keeps this part of Python in a package of its own.
        if [ "$(id -u)" -ne 0 ]; then
            echo "setup: python3 cannot make virtual environments  -> sudo apt-get install python3-venv" >&2
            exit 2
        fi
        echo "setup: installing python3-venv"
        apt-get update -qq
        apt-get install -qq -y --no-install-recommends python3-venv >/dev/null
    fi
    echo "setup: making the virtual environment $venv"
    python3 -m venv $venv
fi

if [ "$(cat $stamp 2>/dev/null)" != "$wanted" ]; then
    echo "setup: installing the package and its tools"
    $venv/bin/pip install -q --upgrade 'pip>=25.1' 2>/dev/null || $venv/bin/pip install -q --upgrade 'pip>=25.1'
    # A plain path entry instead of an import hook: the hook would be loaded by every Python that starts.
    $venv/bin/pip install -q --group dev -e . --config-settings editable_mode=compat >$venv/.hermit-pip.log 2>&1 || {
        cat $venv/.hermit-pip.log >&2
        exit 1
    }
    $venv/bin/python -m compileall -q hermit
    printf '%s\n' "$wanted" >$stamp
fi

scripts/bubblewrap.sh
$venv/bin/python examples/humaneval/prepare.py
