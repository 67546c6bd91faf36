#!/bin/sh
# Builds Hermit's own wheel from the checkout, from a copy: a build leaves its traces beside the source.
#
# The build's backend is called directly, out of its own wheel: pip would make an environment for it first, which takes
# longer than all the rest.
#
#   wheel.sh PYTHON CHECKOUT TOOLS OUTPUT             (SOURCE_DATE_EPOCH in the environment)
set -eu
python=$1 checkout=$2 tools=$3 output=$4

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/source" "$copy/backend"
cp -rL "$checkout/hermit" "$checkout/pyproject.toml" "$checkout/README.md" "$checkout/LICENSE" "$copy/source"
find "$copy/source" -name __pycache__ -prune -exec rm -rf {} +
"$python" -m zipfile -e "$(echo "$tools"/setuptools-*.whl)" "$copy/backend"
cd "$copy/source"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$copy/backend "$python" -c '
import sys
from setuptools import build_meta
build_meta.build_wheel(sys.argv[1])' "$output"
