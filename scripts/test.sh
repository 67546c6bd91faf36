#!/bin/sh
# Runs the tests, in parallel but for those that share something machine-wide (marker `serial`).
# HERMIT_TEST_NEEDS=bwrap,docker,chromium turns a skip for want of these into a failure.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/python -m pytest -q -n "${HERMIT_TEST_WORKERS:-2}" -m 'not serial' "$@"
# 5 is pytest's word for "no test chosen": a part of the tests may hold no serial one.
.venv/bin/python -m pytest -q -m serial "$@" || [ $? -eq 5 ]
