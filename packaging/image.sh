#!/bin/sh
# Usage: image.sh [ARCHITECTURE]
# Builds dist/crsyncer-image_VERSION_ARCHITECTURE.tar from dist/crsyncer_VERSION_ARCHITECTURE.deb with podman, for
# `podman load` and `k3s ctr images import`. Nothing is pulled, and nothing of the image is run.
set -eu
cd "$(dirname "$0")/.."
umask 022
arch=${1:-$(dpkg --print-architecture)}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' crsyncer/__init__.py)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# What the package depends on, but systemd.
depends=$(sed -n 's/^Depends: //p' packaging/debian/control | sed -e 's/([^)]*)//g' -e 's/|[^,]*//g' -e 's/,//g' -e 's/\<systemd\>//')
packaging/unpack-debian.sh "$arch" "$root" $depends ca-certificates
dpkg-deb --extract "dist/crsyncer_${version}_$arch.deb" "$root"
mkdir -p "$root/etc/ssl/certs" "$root/var/lib/crsyncer" "$root/tmp"
cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
echo 'crsyncer:x:65532:65532:crsyncer agent:/var/lib/crsyncer:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'crsyncer:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
rm -rf "$root/etc/crsyncer" "$root/usr/lib/systemd" "$root/usr/lib/sysusers.d" "$root/usr/share/man" "$root/usr/sbin" "$root/sbin"
find "$root/usr/bin" -type f -not -name crsyncer -delete
rm -f "$root"/usr/lib/*/ossl-modules/legacy.so

podman build --quiet --format docker --platform "linux/$arch" --timestamp "$(git log -1 --format=%ct)" \
    --label "org.opencontainers.image.version=$version" --tag "crsyncer:$version" --file packaging/Containerfile "$work"
rm -f "dist/crsyncer-image_${version}_$arch.tar"
podman save --quiet --format docker-archive --output "dist/crsyncer-image_${version}_$arch.tar" "crsyncer:$version"
