#!/bin/sh
# Makes a Docker engine answer on this machine (`make engine`); does nothing where one does already.
#
# Debian's docker.io is installed where there is no dockerd, and dockerd is started plainly in the background: no systemd,
# no registry and no cgroup v2 needed. LOG and WAIT_S say where its log goes and how many seconds it may take to answer.
set -eu

LOG=${LOG:-/var/log/dockerd.log}
WAIT_S=${WAIT_S:-60}
RUN=/var/run
started=

answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

say() { printf 'engine: %s\n' "$*"; }
fail() {
    printf 'engine: %s\n' "$*" >&2
    exit 1
}

lives() { # lives NAME PIDFILE: whether the file names a process that is NAME now
    pid=$(cat "$2" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]
}

install_engine() {
    say "installing docker.io"
    words=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    # Up to Debian 12 the client comes with the engine, afterwards it is a package of its own.
    # shellcheck disable=SC2046
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends docker.io \
        $(apt-cache --names-only search '^docker-cli$' | cut -d ' ' -f 1); } >"$words" 2>&1 || {
        tail -n 20 "$words" >&2
        rm -f "$words"
        fail "docker.io could not be installed"
    }
    rm -f "$words"
}

drop_stale_pids() {
    # After a crash, or in a copy of a machine, the numbers in these files belong to other programs, and dockerd would
    # wait for them.
    lives dockerd "$RUN/docker.pid" || rm -f "$RUN/docker.pid"
    lives containerd "$RUN/docker/containerd/containerd.pid" || rm -f "$RUN/docker/containerd/containerd.pid"
}

mount_control_groups() {
    # A machine without systemd may have mounted none; dockerd does not start then.
    grep -qE '^\S+ /sys/fs/cgroup\S* cgroup' /proc/mounts && return
    say "mounting the control groups"
    mount -t cgroup2 none /sys/fs/cgroup || fail "there are no control groups on this machine"
}

start() {
    say "starting dockerd, its log is $LOG"
    if [ -d /run/systemd/system ]; then
        systemctl start docker && return
    fi
    drop_stale_pids
    mount_control_groups
    setsid nohup dockerd >>"$LOG" 2>&1 </dev/null &
    started=$!
}

if version=$(answers); then
    say "an engine answers already: $version"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    lives dockerd "$RUN/docker.pid" && fail "an engine runs but does not answer this user: sudo usermod -aG docker $(id -un), then log in again"
    fail "no engine answers, and installing one takes root: run  sudo make engine"
fi
command -v dockerd >/dev/null && command -v docker >/dev/null || install_engine
# The package may have started it, and one that is just coming up needs no second.
lives dockerd "$RUN/docker.pid" || start

waited=0
while ! version=$(answers); do
    if [ "$waited" -ge "$WAIT_S" ] || { [ -n "$started" ] && ! kill -0 "$started" 2>/dev/null; }; then
        tail -n 20 "$LOG" >&2 2>/dev/null || true
        fail "dockerd ended or does not answer after $waited s; the last lines of $LOG stand above"
    fi
    sleep 1
    waited=$((waited + 1))
done
say "an engine answers: $version"
