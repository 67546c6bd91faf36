#!/bin/sh
# Installs Hermit's wheel as a tree below STAGE, to be laid over the environment, with the list of what the image holds.
#
#   hermit.sh CONTEXT STAGE
set -eu
context=$1 stage=$2
python=/opt/hermit/bin/python

export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
$python "$(echo "$context"/pip-*.whl)/pip" install --quiet --no-cache-dir --no-compile --no-index --no-deps \
    --no-warn-script-location --ignore-installed --root "$stage" --prefix /opt/hermit "$context"/hermit_oci-*.whl
library=$(echo "$stage"/opt/hermit/lib/python*/site-packages)
$python -m compileall -q -f -s "$stage" --invalidation-mode unchecked-hash "$library"
install -D -m 644 "$context/seccomp.json" "$stage/opt/hermit/share/seccomp.json"
PYTHONPATH=$library $python -m hermit.oci.images.contents "$stage/opt/hermit/share" "$context/built.json" "$library"
