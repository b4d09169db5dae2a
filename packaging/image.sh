#!/bin/sh
# Usage: image.sh [ARCHITECTURE]
# Builds from dist/crsyncer_VERSION_ARCHITECTURE.deb with podman, for `podman load` and `k3s ctr images import`:
# - dist/crsyncer-image_VERSION_ARCHITECTURE.tar, for agent and fleet controller;
# - dist/crsyncer-door-image_VERSION_ARCHITECTURE.tar, the same with HAProxy on top, for the front door.
# Nothing is pulled, and nothing of the images is run.
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

# build NAME CONTAINERFILE DIRECTORY [OPTION...]
build() {
    name=$1 file=packaging/$2 directory=$3
    shift 3
    podman build --quiet --format docker --platform "linux/$arch" --timestamp "$(git log -1 --format=%ct)" \
        --label "org.opencontainers.image.version=$version" "$@" --tag "$name:$version" --file "$file" "$directory"
    archive=dist/$name-image_${version}_$arch.tar
    rm -f "$archive"
    podman save --quiet --format docker-archive --output "$archive" "$name:$version"
}
build crsyncer Containerfile "$work"

# HAProxy and the libraries that the agent's image lacks.
packaging/unpack-debian.sh "$arch" "$work/debian" haproxy libcap2 libcrypt1 libgcrypt20 libgpg-error0 liblua5.3-0 \
    liblz4-1 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0 libsystemd0 libzstd1
haproxy=$work/door/haproxy
install -D -t "$haproxy/usr/sbin" "$work/debian/usr/sbin/haproxy"
install -D -m 644 -t "$haproxy/usr/share/doc/haproxy" "$work/debian/usr/share/doc/haproxy/copyright"
for folder in "$work"/debian/lib/*-linux-gnu "$work"/debian/usr/lib/*-linux-gnu; do
    mkdir -p "$haproxy/${folder#"$work/debian/"}"
    find "$folder" -maxdepth 1 -name '*.so.*' -exec cp -a -t "$haproxy/${folder#"$work/debian/"}" {} +
done
build crsyncer-door Containerfile.door "$work/door" --build-arg "VERSION=$version"
