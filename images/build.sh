#!/bin/bash
# Builds the image `hermit` and `hermit:<version>` from this checkout (`make image`).
#
#   images/build.sh             build what is missing; seconds when nothing changed
#   images/build.sh --refresh   make the root filesystem anew, with the suite's latest fixes
#
# The host fetches, the build is offline: Debian's packages come by mmdebstrap, the wheels by the host's pip, with the
# proxies, certificates and indexes the host is set up with; the engine then builds without a network. Three images, each
# tagged with the digest of what it is made from, so that a change rebuilds its own layer and those above it:
#
#   hermit-rootfs:<digest>        Debian; changes with images/pins.toml
#   hermit-environment:<digest>   + /opt/hermit with the packages; changes with images/base/requirements.txt
#   hermit                        + Hermit; changes with the source; tagged only after images/base/test.sh passed
#
# Variables: BASE_IMAGE (a Debian image to complete, in place of mmdebstrap), PYTHON (the interpreter whose pip fetches).
set -euo pipefail

IMAGES=$(cd "$(dirname "$0")" && pwd)
CHECKOUT=$(dirname "$IMAGES")
BASE=$IMAGES/base
CACHE=$IMAGES/.cache
LOG=$CACHE/build.log

say() { printf 'image: %s\n' "$*"; }
fail() {
    printf 'image: %s\n' "$*" >&2
    exit 1
}

# ---- what the inputs are -------------------------------------------------------------------------------------------

pin() { # pin SECTION KEY: one value of pins.toml; a list comes with commas
    "$PYTHON" - "$IMAGES/pins.toml" "$@" <<'EOF'
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    value = tomllib.load(file)[sys.argv[2]][sys.argv[3]]
print(",".join(value) if isinstance(value, list) else value)
EOF
}

version() { sed -n 's/^version = "\(.*\)"$/\1/p' "$CHECKOUT/pyproject.toml" | head -n 1; }

digest() { # digest of the text on standard input
    sha256sum | cut -c 1-12
}

contents() { # contents PATH...: one line per file, in an order that no locale changes
    (cd "$CHECKOUT" && find -L "$@" -name __pycache__ -prune -o -type f ! -name '*.pyc' -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum)
}

rootfs_inputs() {
    uname -m
    contents images/pins.toml
    if [ -n "${BASE_IMAGE:-}" ]; then
        docker image inspect --format '{{.Id}}' "$BASE_IMAGE" 2>/dev/null || echo "$BASE_IMAGE"
        contents images/base/rootfs.Dockerfile images/base/steps/packages.sh
    else
        contents images/base/steps/rootfs.sh
    fi
}

revision() {
    local commit
    commit=$(git -C "$CHECKOUT" rev-parse HEAD 2>/dev/null) || { echo unknown && return; }
    [ -z "$(git -C "$CHECKOUT" status --porcelain -- hermit images pyproject.toml 2>/dev/null)" ] || commit=$commit-dirty
    echo "$commit"
}

# ---- the engine ----------------------------------------------------------------------------------------------------

# BuildKit is twice as fast as the classic builder, but not every client can speak to it: a client from 23 on needs
# buildx for it, one before has it built in.
choose_builder() {
    local client major
    for client in docker /usr/bin/docker; do
        major=$("$client" version --format '{{.Client.Version}}' 2>/dev/null | cut -d . -f 1) || continue
        if "$client" buildx version >/dev/null 2>&1 || [ "${major:-99}" -lt 23 ]; then
            BUILDER=$client DOCKER_BUILDKIT=1
            export DOCKER_BUILDKIT
            return
        fi
    done
    BUILDER=docker DOCKER_BUILDKIT=0
    export DOCKER_BUILDKIT
}

exists() { docker image inspect "$1" >/dev/null 2>&1; }

build() { # build DOCKERFILE CONTEXT option...: one quiet build, its words kept for the case that it fails
    local dockerfile=$1 context=$2
    shift 2
    if ! "$BUILDER" build "$@" --force-rm --file "$dockerfile" "$context" >"$LOG" 2>&1; then
        tail -n 40 "$LOG" >&2
        fail "the build of $(basename "$dockerfile") failed; the whole log is $LOG"
    fi
}

# The classic builder leaves the last image of each stage without a name; ours carry a label.
prune() { docker image prune --force --filter label=hermit.intermediate=1 >/dev/null; }

drop_superseded() { # drop_superseded REPOSITORY TAG: the other tags of one of our own repositories
    docker image ls --format '{{.Repository}}:{{.Tag}}' "$1" | grep -vFx "$1:$2" | xargs -r docker rmi >/dev/null 2>&1 || true
}

# ---- the three images ----------------------------------------------------------------------------------------------

ensure_mmdebstrap() {
    command -v mmdebstrap >/dev/null && return
    [ "$(id -u)" = 0 ] || fail "mmdebstrap is missing: run  sudo apt-get install -y mmdebstrap  or name an image with BASE_IMAGE="
    say "installing mmdebstrap"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends mmdebstrap; } \
        >"$LOG" 2>&1 || { tail -n 20 "$LOG" >&2 && fail "mmdebstrap could not be installed"; }
}

rootfs_from_debian() {
    ensure_mmdebstrap
    say "making the root filesystem of Debian $SUITE"
    sh "$BASE/steps/rootfs.sh" "$SUITE" "$PACKAGES" "$CACHE/rootfs.tar" 2>"$LOG" || {
        tail -n 20 "$LOG" >&2
        fail "mmdebstrap failed; it needs a Debian mirror, root or user namespaces"
    }
    docker import --message "Debian $SUITE by mmdebstrap" "$CACHE/rootfs.tar" "$ROOTFS" >/dev/null
    rm -f "$CACHE/rootfs.tar"
}

rootfs_from_image() {
    local context=$CACHE/rootfs
    say "completing $BASE_IMAGE"
    rm -rf "$context" && mkdir -p "$context/host"
    cp "$BASE/steps/packages.sh" "$context"
    apt-config dump 2>/dev/null | grep -Ei '^Acquire::https?::proxy' >"$context/host/apt.conf" || true
    cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$context/host/ca.pem" 2>/dev/null || : >"$context/host/ca.pem"
    # The host's network, because its proxy may listen on its loopback; the proxy variables are the builder's own
    # predefined arguments, which leave no trace in the history.
    build "$BASE/rootfs.Dockerfile" "$context" --network host --build-arg http_proxy --build-arg https_proxy \
        --build-arg no_proxy --build-arg "BASE_IMAGE=$BASE_IMAGE" --build-arg "SUITE=$SUITE" \
        --build-arg "PACKAGES=$PACKAGES" --tag "$ROOTFS"
    rm -rf "$context"
}

wheels() { # wheels LOCK DIRECTORY: fetched once for each content of the lock
    [ -d "$2" ] && return
    local options=() libc
    for libc in $(pin python glibc | tr , ' '); do
        options+=(--platform "manylinux_${libc}_$(uname -m)")
    done
    options+=(--platform "manylinux2014_$(uname -m)" --implementation cp --python-version "$VERSION_OF_PYTHON")
    options+=(--abi "$(pin python abi)" --abi abi3 --abi none)
    sh "$BASE/steps/wheels.sh" "$PYTHON" "$1" "$2" "${options[@]}"
}

environment() {
    local context=$CACHE/environment wheelhouse
    wheelhouse=$CACHE/wheels-$(digest <"$BASE/requirements.txt")
    [ -d "$wheelhouse" ] || { say "fetching the wheels" && rm -rf "$CACHE"/wheels-*; }
    wheels "$BASE/requirements.txt" "$wheelhouse"
    say "building the environment ($([ "$DOCKER_BUILDKIT" = 1 ] && echo BuildKit || echo 'classic builder'), about a minute)"
    rm -rf "$context" && mkdir -p "$context"
    cp -rl "$wheelhouse" "$context/wheels"
    cp -rl "$TOOLS" "$context/tools"
    cp "$BASE/requirements.txt" "$BASE/steps/environment.sh" "$context"
    build "$BASE/environment.Dockerfile" "$context" --network none --build-arg "ROOTFS=$ROOTFS" \
        --build-arg "PYTHON=$VERSION_OF_PYTHON" --tag "$ENVIRONMENT"
    rm -rf "$context"
}

final() {
    local context=$CACHE/hermit
    say "building hermit $VERSION"
    rm -rf "$context" && mkdir -p "$context"
    sh "$BASE/steps/wheel.sh" "$PYTHON" "$CHECKOUT" "$TOOLS" "$context"
    cp "$TOOLS"/pip-*.whl "$IMAGES/seccomp.json" "$BASE/steps/hermit.sh" "$context"
    rm -f "$CACHE/image-id"
    build "$BASE/Dockerfile" "$context" --network none --build-arg "ENVIRONMENT=$ENVIRONMENT" --build-arg "VERSION=$VERSION" \
        --build-arg "REVISION=$(revision)" --build-arg "INPUTS=$INPUTS" --iidfile "$CACHE/image-id"
    rm -rf "$context"
    say "testing it"
    "$BASE/test.sh" "$(cat "$CACHE/image-id")" || {
        docker rmi "$(cat "$CACHE/image-id")" >/dev/null 2>&1 || true
        fail "the image does not pass its own test and was not tagged"
    }
    give_names "$(cat "$CACHE/image-id")"
}

give_names() { # give_names IMAGE-ID: takes the names from the image that had them, and removes it where nothing uses it
    local before id
    before=$(docker image inspect --format '{{.Id}}' hermit:latest "hermit:$VERSION" 2>/dev/null | sort -u) || true
    docker tag "$1" "hermit:$VERSION"
    docker tag "$1" hermit:latest
    for id in $before; do
        [ "$id" = "$1" ] || docker rmi "$id" >/dev/null 2>&1 || true
    done
}

# ---- the order -----------------------------------------------------------------------------------------------------

main() {
    local refresh=
    [ "${1:-}" = --refresh ] && refresh=1
    PYTHON=${PYTHON:-$CHECKOUT/.venv/bin/python}
    [ -x "$PYTHON" ] || fail "there is no $PYTHON: run  make setup  first"
    docker version >/dev/null 2>&1 || fail "no Docker engine answers: run  make engine  first"
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock" && flock 9
    choose_builder

    SUITE=$(pin debian suite) PACKAGES=$(pin debian packages) VERSION_OF_PYTHON=$(pin python version)
    SOURCE_DATE_EPOCH=$(pin debian source_date_epoch) VERSION=$(version)
    export SOURCE_DATE_EPOCH
    TOOLS=$CACHE/tools-$(digest <"$BASE/tools.txt")
    ROOTFS=hermit-rootfs:$(rootfs_inputs | digest)
    ENVIRONMENT=hermit-environment:$({ echo "$ROOTFS" && contents images/base/requirements.txt images/base/tools.txt \
        images/base/steps/environment.sh images/base/environment.Dockerfile; } | digest)
    INPUTS=$({ echo "$ENVIRONMENT" && contents hermit pyproject.toml README.md LICENSE images/base/Dockerfile images/base/test.sh \
        images/base/steps/hermit.sh images/base/steps/wheel.sh images/seccomp.json; } | digest)

    # The image in use keeps its layers and its names until its successor has passed the test.
    [ -z "$refresh" ] || docker rmi "$ENVIRONMENT" "$ROOTFS" >/dev/null 2>&1 || true
    if [ -z "$refresh" ] && [ "$(docker image inspect --format '{{index .Config.Labels "hermit.inputs"}}' "hermit:$VERSION" 2>/dev/null)" = "$INPUTS" ]; then
        docker tag "hermit:$VERSION" hermit:latest
        say "hermit $VERSION is up to date"
        return
    fi
    trap prune EXIT
    wheels "$BASE/tools.txt" "$TOOLS"
    if ! exists "$ENVIRONMENT"; then
        exists "$ROOTFS" || if [ -n "${BASE_IMAGE:-}" ]; then rootfs_from_image; else rootfs_from_debian; fi
        environment
    fi
    final
    drop_superseded hermit-environment "${ENVIRONMENT#*:}"
    drop_superseded hermit-rootfs "${ROOTFS#*:}"
    say "hermit $VERSION is ready: docker run --rm hermit check"
}

main "$@"
