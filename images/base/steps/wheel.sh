#!/bin/sh
# Builds Hermit's own wheel from the checkout, from a copy: a build leaves its traces beside the source.
#
#   wheel.sh PYTHON CHECKOUT TOOLS OUTPUT             (SOURCE_DATE_EPOCH in the environment)
set -eu
python=$1 checkout=$2 tools=$3 output=$4

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -rL "$checkout/hermit" "$checkout/pyproject.toml" "$checkout/README.md" "$checkout/LICENSE" "$copy"
find "$copy" -name __pycache__ -prune -exec rm -rf {} +
"$python" -m pip wheel --quiet --no-deps --no-index --find-links "$tools" --wheel-dir "$output" "$copy"
