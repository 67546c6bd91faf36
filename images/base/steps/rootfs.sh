#!/bin/sh
# Makes the image's Debian root filesystem as one tar archive. Runs on the host: its package proxy, its certificates
# and its mirror apply here, and nothing of them enters the archive.
#
#   rootfs.sh SUITE PACKAGE,PACKAGE OUTPUT.tar        (SOURCE_DATE_EPOCH in the environment)
set -eu
suite=$1 packages=$2 output=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The host's own Debian sources where it has any of this suite, else mmdebstrap's choice.
apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="$suite" '$1 == "Debian" && ($3 == suite || index($3, suite "-") == 1) { print "deb", $2, $3, $4 }' |
    sort -u >"$work/sources.list"
awk -v suite="$suite" '$3 == suite { found = 1 } END { exit !found }' "$work/sources.list" || : >"$work/sources.list"

# The proxy and the certificates the host's apt uses.
apt-config dump 2>/dev/null | grep -Ei '^Acquire::https?::(proxy|cainfo|caproxy)' >"$work/apt.conf" || true
set --
while IFS= read -r line; do
    set -- "$@" "--aptopt=$line"
done <"$work/apt.conf"

source=
[ -s "$work/sources.list" ] && source=$work/sources.list

# Each package with its version, its architecture and the digest that its archive had: apt takes no other file for it.
listed=/usr/share/hermit/debian.sha256
cat >"$work/list.sh" <<'END'
set -eu
mkdir -p "$(dirname "$1")"
dpkg-query --show --showformat '${Package}=${Version}\n' | xargs apt-cache show --no-all-versions |
    awk '$1 == "Package:" { name = $2 } $1 == "Version:" { version = $2 } $1 == "Architecture:" { arch = $2 }
        $1 == "SHA256:" { print name, version, arch "=" $2 }' | LC_ALL=C sort -u >"$1"
END

# mmdebstrap writes the options above and the sources into the tree; the last hook takes them out again. Manuals and
# translations are of no use to a program.
mmdebstrap --quiet --variant=minbase --include="$packages" "$@" \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook="upload '$work/list.sh' /list.sh" \
    --customize-hook="chroot \"\$1\" sh /list.sh $listed; rm \"\$1\"/list.sh" \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/resolv.conf "$1"/etc/hostname' \
    --customize-hook='rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*' \
    "$suite" "$output.partial.tar" $source
mv "$output.partial.tar" "$output"
