#!/bin/sh
# Installs the scorers' packages as a tree below STAGE, to be laid over the environment. Equal wheels give equal files.
#
#   packages.sh CONTEXT STAGE
set -eu
context=$1 stage=$2
python=/opt/hermit/bin/python
pip="$python $(echo "$context"/tools/pip-*.whl)/pip"

export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
$pip install --quiet --no-cache-dir --no-compile --no-index --no-deps --no-warn-script-location --ignore-installed \
    --root "$stage" --prefix /opt/hermit --find-links "$context/wheels" --require-hashes --requirement "$context/requirements.txt"
$python -m compileall -q -f -s "$stage" --invalidation-mode unchecked-hash "$stage/opt/hermit/lib" || true
# Whether everything fits together shows only where both lie in one tree; this one is thrown away.
cp -r "$stage/opt/hermit/." /opt/hermit
$pip check >/dev/null
