#!/bin/sh
# Usage: door-deb.sh
# Builds dist/crsyncer-door_VERSION_all.deb: the units of the front door, for the programs of two other packages, crsyncer
# and haproxy. The same commit gives the same bytes.
set -eu
cd "$(dirname "$0")/.."
umask 022
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' crsyncer/__init__.py)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=$work/root

install -D -m 644 -t "$root/usr/lib/systemd/system" systemd/door/crsyncer-door*.service
install -D -m 644 packaging/door/sysusers "$root/usr/lib/sysusers.d/crsyncer-door.conf"
install -D -m 644 systemd/door/config.yaml "$root/etc/crsyncer-door/config.yaml"
install -D -m 644 LICENSE "$root/usr/share/doc/crsyncer-door/copyright"
install -D -m 755 -t "$root/DEBIAN" packaging/door/postinst packaging/door/prerm packaging/door/postrm
echo /etc/crsyncer-door/config.yaml >"$root/DEBIAN/conffiles"
size=$(find "$root" -type f -printf '%s\n' -o -printf '1024\n' | awk '{kib += int(($1 + 1023) / 1024)} END {print kib}')
sed -e "s/@VERSION@/$version/g" -e "s/@SIZE@/$size/" packaging/door/control >"$root/DEBIAN/control"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p dist
dpkg-deb --root-owner-group --build "$root" "dist/crsyncer-door_${version}_all.deb"
