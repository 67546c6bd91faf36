#!/bin/bash
# Tests the image `hermit-judge` from outside before it gets its name.
#
#   images/judge/test.sh IMAGE
set -euo pipefail

IMAGE=$1
# shellcheck source=images/checks.sh
. "$(dirname "$0")/../checks.sh"

check "the packages import, unprivileged, read-only, without a network" closed python -c '
import numpy, pandas, scipy.stats, torch, pydantic, hypothesis, jsonschema, pytest, rapidfuzz.fuzz, sklearn.metrics
assert sklearn.metrics.accuracy_score([1, 0], [1, 1]) == 0.5
assert rapidfuzz.fuzz.ratio("hermit", "hermit") == 100'
check "a scorer's tests run under pytest" closed sh -c '
set -e
echo "def test_one(): assert True" >/tmp/test_one.py
pytest -q -p no:cacheprovider --timeout 30 /tmp/test_one.py | grep -q "1 passed"'
check "no agent program is there" closed sh -c '! command -v codex && ! command -v claude && ! command -v node'
installed
clean

exit "$FAILED"
