#!/bin/sh
# Trains the first example and scores the adapter before and after, on tasks that were held out: in the image where a container
# engine answers, with bubblewrap on this machine otherwise.
set -eu
cd "$(dirname "$0")/.."

if (docker version || podman version) >/dev/null 2>&1; then
    echo "demo-train: a container engine answers, so the sandboxes start in the image; building it where it is not up to date"
    .venv/bin/hermit image build
    runtime=image
else
    echo "demo-train: no container engine answers, so the sandboxes start on this machine (make engine starts one)"
    runtime=local
fi

config=examples/first_training/run.yaml
runs=$PWD/examples/first_training/runs/demo # a finished training run does not start again: each demo is a new one
rm -rf "$runs"

run() {
    command=$1
    shift
    echo "demo-train: hermit $command --config $config${*:+ $*}"
    .venv/bin/hermit "$command" --config "$config" --runtime "$runtime" "$@" "trainer.output_dir=$runs"
}

mean() {
    .venv/bin/python -c 'import json, sys; print(json.load(open(sys.argv[1]))["mean_score"])' \
        "$runs/first_training/eval/$1/summary.json"
}

run eval --adapter root
run train
run eval --adapter final
baseline=$(mean root)
final=$(mean final)
echo "demo-train: on tasks held out: baseline $baseline, final $final"
