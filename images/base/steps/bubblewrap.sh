#!/bin/sh
# Builds bubblewrap as a tree below STAGE, from Debian's source package. Runs in a stage that is thrown away.
#
#   bubblewrap.sh CONTEXT STAGE       CONTEXT holds the two archives of the package
set -eu
context=$1 stage=$2

mkdir /source && cd /source
tar -xf "$(echo "$context"/*.orig.tar.*)" --strip-components 1
tar -xf "$(echo "$context"/*.debian.tar.*)"
if [ -f debian/patches/series ]; then
    while IFS= read -r patch; do
        case $patch in '' | '#'*) continue ;; esac
        patch -p1 --quiet <"debian/patches/$patch"
    done <debian/patches/series
fi

# The directory it is built in stands in no part of the program.
export CFLAGS="-O2 -g0 -fstack-protector-strong -fPIE -ffile-prefix-map=/source=. -Wformat -Werror=format-security -D_FORTIFY_SOURCE=2"
export LDFLAGS="-pie -Wl,-z,relro,-z,now"
meson setup /build --prefix /usr --buildtype plain -Dman=disabled -Dtests=false -Dselinux=disabled \
    -Dbash_completion=disabled -Dzsh_completion=disabled >/dev/null
ninja -C /build >/dev/null
install -D -m 755 /build/bwrap "$stage/usr/bin/bwrap"
strip "$stage/usr/bin/bwrap"
install -D -m 644 debian/copyright "$stage/usr/share/doc/bubblewrap/copyright"
"$stage/usr/bin/bwrap" --version
