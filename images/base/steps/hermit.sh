#!/bin/sh
# Installs Hermit's wheel as a tree below STAGE, to be laid over the environment.
#
#   hermit.sh WHEEL-DIRECTORY STAGE
set -eu
directory=$1 stage=$2

export PYTHONDONTWRITEBYTECODE=1
/opt/hermit/bin/python "$(echo "$directory"/pip-*.whl)/pip" install --quiet --no-cache-dir --no-compile --no-index --no-deps \
    --no-warn-script-location --ignore-installed --root "$stage" --prefix /opt/hermit "$directory"/hermit_oci-*.whl
/opt/hermit/bin/python -m compileall -q -f -s "$stage" --invalidation-mode unchecked-hash "$stage/opt/hermit/lib"
