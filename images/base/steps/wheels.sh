#!/bin/sh
# Fetches the wheels of a lock file with the host's pip, so that its index, proxy and certificates stay on the host.
#
#   wheels.sh PYTHON LOCK DIRECTORY pip-option...     the options say for which interpreter
set -eu
python=$1 lock=$2 directory=$3
shift 3

rm -rf "$directory.partial"
if ! "$python" -m pip download --quiet --no-deps --require-hashes --only-binary=:all: "$@" \
    --dest "$directory.partial" --requirement "$lock" 2>"$directory.log"; then
    grep -v '^WARNING' "$directory.log" | tail -n 15 >&2
    cat >&2 <<'EOF'
The wheels of the image could not be fetched. Where the complaint is about torch: its CPU build is not on every index;
point PIP_EXTRA_INDEX_URL at an index that has it, or PIP_FIND_LINKS at a directory with its wheel.
EOF
    exit 1
fi
rm -f "$directory.log"
rm -rf "$directory"
mv "$directory.partial" "$directory"
