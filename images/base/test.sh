#!/bin/bash
# Tests the image `hermit` from outside before it gets its name.
#
#   images/base/test.sh IMAGE
set -euo pipefail

IMAGE=$1
# shellcheck source=images/checks.sh
. "$(dirname "$0")/../checks.sh"

closed "the packages import, unprivileged, read-only, without a network" "python -c '
import os, numpy, pandas, scipy.stats, torch, pydantic, yaml, rich, typer
assert os.getuid() == 1000
assert float(torch.ones(2, 2).matmul(torch.ones(2, 2)).sum()) == 8.0'"
installed
clean
finish
