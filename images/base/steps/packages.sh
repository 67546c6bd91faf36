#!/bin/sh
# Completes another Debian image to the root filesystem Hermit needs. Runs as root in a stage that is thrown away;
# /host holds the host's certificates and apt settings, which this step removes again.
#
#   packages.sh SUITE PACKAGE,PACKAGE
set -eu
suite=$1 packages=$2

. /etc/os-release
if [ "${VERSION_CODENAME:-}" != "$suite" ]; then
    echo "BASE_IMAGE is ${PRETTY_NAME:-not Debian}; the wheels need Debian $suite: name an image of it." >&2
    exit 1
fi
settings=/etc/apt/apt.conf.d/00host
cp /host/apt.conf "$settings"
if [ -s /host/ca.pem ]; then
    printf 'Acquire::https::CaInfo "/host/ca.pem";\n' >>"$settings"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# shellcheck disable=SC2046
apt-get -qq install --yes --no-install-recommends $(echo "$packages" | tr , ' ') >/dev/null
apt-get -qq clean
rm -rf "$settings" /host /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/* /etc/apt/sources.list /etc/apt/sources.list.d/*
