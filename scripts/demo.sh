#!/bin/sh
# Scores the HumanEval example: in the image where a container engine answers, with bubblewrap on this machine otherwise.
set -eu
cd "$(dirname "$0")/.."

if (docker version || podman version) >/dev/null 2>&1; then
    echo "demo: a container engine answers, so the sandboxes start in the image; building it where it is not up to date"
    .venv/bin/hermit image build
    runtime=image
else
    echo "demo: no container engine answers, so the sandboxes start on this machine (make engine starts one)"
    runtime=local
fi
exec .venv/bin/hermit eval --config examples/humaneval/run.yaml --adapter none --runtime $runtime --fresh
