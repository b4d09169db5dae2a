#!/bin/sh
# Usage: unpack-debian.sh ARCHITECTURE DIRECTORY PACKAGE...
# Unpacks Debian packages, of this or another architecture, without installing them. Needs no root.
set -eu
arch=$1 target=$2
shift 2
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs" "$target"
apt() {
    apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User= \
        -o Dir::Etc::SourceList="$here/debian.sources" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$work" -o Dir::State::Lists="$work/lists" -o Dir::State::Status=/dev/null \
        -o Dir::Cache="$work" -o Acquire::Languages=none "$@"
}
apt update
(cd "$work/debs" && apt download "$@")
for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$target"; done
