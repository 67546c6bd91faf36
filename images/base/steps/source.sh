#!/bin/sh
# Fetches one file of Debian's archive with the host's own tools, so that its mirror, proxy and certificates stay on the
# host. DEBIAN_MIRROR names a mirror where apt here has none of Debian, or another is to be asked.
#
#   source.sh PATH SHA256 OUTPUT
set -eu
path=$1 hash=$2 output=$3

mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $4; exit }')}
[ -n "$mirror" ] || { echo "apt here knows no mirror of Debian" >&2 && exit 1; }

if [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper download-file "${mirror%/}/$path" "$output.partial" "SHA256:$hash" >/dev/null
else
    curl --fail --silent --show-error --location --output "$output.partial" "${mirror%/}/$path"
fi
echo "$hash  $output.partial" | sha256sum --check --quiet
mv "$output.partial" "$output"
