#!/bin/bash
# What the tests of the images share. A test sets IMAGE, reads this file, names its checks, and ends with  finish.
#
# A container costs more than most checks: all that can run as Hermit runs its own share one, and those of root another.

PROFILE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/seccomp.json
FAILED=0
CLOSED='' ROOT=''
# How one check is run in a container, and what it says.
ONE='
one() {
    local words
    if words=$(sh -c "$2" 2>&1); then
        printf "  ok    %s\n" "$1"
    else
        printf "  FAIL  %s\n%s\n" "$1" "$words" >&2
        failed=1
    fi
}
failed=0
'

closed() { # closed GUARANTEE SCRIPT: in a container with the options Hermit itself uses
    CLOSED+="one $(printf '%q ' "$1" "$2")"$'\n'
}

root() { # root GUARANTEE SCRIPT: by who may read everything
    ROOT+="one $(printf '%q ' "$1" "$2")"$'\n'
}

outside() { # outside GUARANTEE SCRIPT: on this machine, with the image as $1
    local words
    if words=$(bash -c "$2" - "$IMAGE" 2>&1); then
        printf '  ok    %s\n' "$1"
    else
        printf '  FAIL  %s\n%s\n' "$1" "$words" >&2
        FAILED=1
    fi
}

finish() { # runs what was named, and ends the test
    docker run --rm --init --read-only --tmpfs /tmp:mode=1777,size=64m --network none --user 1000:1000 --cap-drop ALL \
        --security-opt no-new-privileges --security-opt "seccomp=$PROFILE" --security-opt systempaths=unconfined \
        --pids-limit 256 --memory 2g --entrypoint bash "$IMAGE" -c "$ONE$CLOSED"'exit "$failed"' || FAILED=1
    docker run --rm --network none --user 0 --entrypoint bash "$IMAGE" -c "$ONE$ROOT"'exit "$failed"' || FAILED=1
    exit "$FAILED"
}

installed() { # what both images are
    closed "hermit imports from the environment, has its byte code, runs on Debian's own interpreter, and answers" '
set -e
python -c "
import os, sys
import hermit.errors
assert hermit.__path__[0] == \"/opt/hermit/lib/python3.11/site-packages/hermit\", hermit.__path__
assert os.path.exists(hermit.errors.__cached__), hermit.errors.__cached__
assert sys.version_info[:2] == (3, 11) and sys.base_prefix == \"/usr\", (sys.version, sys.base_prefix)"
hermit --version'
    closed "git and a bubblewrap from 0.12 on are there" '
set -e
git --version
version=$(bwrap --version)
case ${version#bubblewrap } in 0.[0-9].* | 0.1[01].*) echo "$version"; exit 1 ;; esac'
    closed "bubblewrap starts, and starts again inside itself" '
set -e
level() {
    echo "bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup --uid 1000 --gid 1000 \
--ro-bind / / --proc /proc --dev /dev --die-with-parent"
}
$(level) $(level) true'
    closed "the profile inside is the one it was tested with, and the lists of what it holds are there" "
set -e
echo '$(sha256sum "$PROFILE" | cut -d ' ' -f 1)  /opt/hermit/share/seccomp.json' | sha256sum --check --quiet
grep -q '^source.bubblewrap.' /opt/hermit/share/contents.tsv
grep -q 'SPDX-2.3' /opt/hermit/share/sbom.spdx.json"
}

clean() { # what the host used to fetch must not have come along
    root "no wheel, no cache, no package index and no proxy stayed" '
set -e
found=$(find / -xdev \( -name "*.whl" -o -name pip.conf -o -name .netrc -o -name .cache -o -name 00host \
    -o -path "/etc/apt/sources.list*" -type f -o -path "/etc/apt/*/99mmdebstrap" -o -path "/var/cache/apt/archives/*.deb" \
    -o -path "/var/lib/apt/lists/*Packages*" -o -path /host -o -path /context -o -path /stage \) -not -path "*/site-packages/*")
test -z "$found" || { echo "$found"; exit 1; }
! grep -rEi "proxy|cainfo" /etc/apt/apt.conf.d /etc/environment /etc/profile.d 2>/dev/null'
    closed "no certificate authority but Debian's own is trusted" '
set -e
test -z "$(ls /usr/local/share/ca-certificates)"
ours=$(find /usr/share/ca-certificates -name "*.crt" | wc -l)
test "$(grep -c "BEGIN CERTIFICATE" /etc/ssl/certs/ca-certificates.crt)" -le "$ours"'
    outside "the environment of the image names no proxy, index, certificate or key" '
! docker image inspect --format "{{join .Config.Env \"\n\"}}" "$1" | grep -Ei "proxy|pip_|cert|index|token|secret|key"'
    outside "the history names no proxy, index, certificate or key" '
! docker history --no-trunc --format "{{.CreatedBy}}" "$1" | grep -Ei "proxy=|pip_|\.pem|https?://|token|secret"'
    outside "the image runs as uid 1000 and starts hermit" '
test "$(docker image inspect --format "{{.Config.User}} {{join .Config.Entrypoint \" \"}}" "$1")" = "1000:1000 hermit"'
}
