#!/bin/sh
# Fetches the wheels of a lock file with the host's pip, so that its index, proxy and certificates stay on the host.
#
#   wheels.sh PYTHON LOCK DIRECTORY pip-option...     the options say for which interpreter
set -eu
python=$1 lock=$2 directory=$3
shift 3

rm -rf "$directory.partial"
"$python" -m pip download --quiet --no-deps --require-hashes --only-binary=:all: "$@" \
    --dest "$directory.partial" --requirement "$lock"
rm -rf "$directory"
mv "$directory.partial" "$directory"
