#!/bin/sh
# Makes the environment of the image: the interpreter is Debian's, the packages are the wheels', nothing is fetched.
#
#   environment.sh PYTHON WHEELS TOOLS LOCK
set -eu
python=$1 wheels=$2 tools=$3 lock=$4

export PYTHONDONTWRITEBYTECODE=1
"$python" -m venv --without-pip /opt/hermit
pip="/opt/hermit/bin/python $(echo "$tools"/pip-*.whl)/pip"
$pip install --quiet --no-cache-dir --no-compile --no-index --find-links "$wheels" --require-hashes --requirement "$lock"
$pip check >/dev/null
# A tree that nobody may write never gets byte code later, and each import would compile it anew.
/opt/hermit/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/hermit/lib || true
