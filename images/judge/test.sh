#!/bin/bash
# Tests the image `hermit-judge` from outside before it gets its name.
#
#   images/judge/test.sh IMAGE
set -euo pipefail

IMAGE=$1
# shellcheck source=images/checks.sh
. "$(dirname "$0")/../checks.sh"

closed "the packages import, unprivileged, read-only, without a network" "python -c '
import numpy, pandas, scipy.stats, torch, pydantic, hypothesis, jsonschema, pytest, rapidfuzz.fuzz, sklearn.metrics
assert sklearn.metrics.accuracy_score([1, 0], [1, 1]) == 0.5
assert rapidfuzz.fuzz.ratio(\"hermit\", \"hermit\") == 100'"
closed "a scorer's tests run under pytest" '
set -e
echo "def test_one(): assert True" >/tmp/test_one.py
pytest -q -p no:cacheprovider --timeout 30 /tmp/test_one.py | grep -q "1 passed"'
closed "no agent program is there" '! command -v codex && ! command -v claude && ! command -v node'
installed
clean
finish
