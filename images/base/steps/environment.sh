#!/bin/sh
# Makes the environment of the image as a tree below STAGE: the interpreter is Debian's, the packages are the wheels',
# nothing is fetched. Equal wheels give equal files.
#
#   environment.sh PYTHON WHEELS TOOLS LOCK STAGE
set -eu
python=$1 wheels=$2 tools=$3 lock=$4 stage=$5

export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
"$python" -m venv --without-pip /opt/hermit
pip="/opt/hermit/bin/python $(echo "$tools"/pip-*.whl)/pip"
$pip install --quiet --no-cache-dir --no-compile --no-index --find-links "$wheels" --require-hashes --requirement "$lock"
$pip check >/dev/null
# A tree that nobody may write never gets byte code later, and each import would compile it anew.
/opt/hermit/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/hermit/lib || true

mkdir -p "$stage/opt" "$stage/etc" "$stage/home"
mv /opt/hermit "$stage/opt/hermit"
useradd --uid 1000 --user-group --create-home --shell /bin/bash hermit
cp -a /home/hermit "$stage/home/hermit"
for file in passwd group shadow gshadow; do
    cp -p "/etc/$file" "$stage/etc/$file"
done
