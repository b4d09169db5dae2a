#!/bin/sh
# Usage: deb.sh [ARCHITECTURE]
# Builds dist/crsyncer_VERSION_ARCHITECTURE.deb: Debian's Python 3.11, the dependencies of requirements.lock, crsyncer.
# Nothing of another architecture is run, so that arm64 is built on amd64 as well. The same commit gives the same bytes.
set -eu
host=$(dpkg --print-architecture)
arch=${1:-$host}
case $arch in
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
*) echo "allowed architectures: amd64, arm64" >&2 && exit 2 ;;
esac
cd "$(dirname "$0")/.."
umask 022
pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' crsyncer/__init__.py)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# The interpreter, without modules that need libraries nobody else here needs.
packages="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib"
packaging/unpack-debian.sh "$arch" "$work/debian" $packages
root=$work/root home=$work/root/usr/lib/crsyncer
mkdir -p "$home/bin" "$home/python/bin" "$home/python/lib"
mv "$work/debian/usr/bin/python3.11" "$home/python/bin/"
mv "$work/debian/usr/lib/python3.11" "$home/python/lib/"
ln -s ../python/bin/python3.11 "$home/bin/python"
printf 'home = /usr/lib/crsyncer/python/bin\ninclude-system-site-packages = false\n' >"$home/pyvenv.cfg"
(
    cd "$home/python/lib/python3.11"
    rm -rf ensurepip idlelib lib2to3 pydoc_data sitecustomize.py turtledemo tkinter
    cd lib-dynload
    rm -f _crypt.* _curses* _dbm.* _test* _xx* nis.* ossaudiodev.* readline.* xx*
)
mkdir -p "$root/usr/share/doc/crsyncer"
documents=$work/debian/usr/share/doc/libpython3.11-minimal
cp "$documents/copyright" "$root/usr/share/doc/crsyncer/copyright.python"
python_version=$(zcat "$documents/changelog.Debian.gz" | sed -n '1s/.*(\(.*\)).*/\1/p')

# crsyncer and what it and the expressions of policies depend on: wheels, checked by the hashes of requirements.lock.
site=$home/lib/python3.11/site-packages
$pip wheel --no-deps --no-build-isolation --wheel-dir "$work/wheel" .
wheel=$(echo "$work"/wheel/*.whl)
echo "crsyncer[expressions] @ file://$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d' ' -f1)" >"$work/requirements"
$pip install --target "$site" --only-binary=:all: --no-compile --implementation cp --python-version 3.11 \
    --platform "manylinux_2_34_$machine" --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" --require-hashes --constraint requirements.lock --requirement "$work/requirements"
rm -rf "$site/bin" "$site"/pip "$site"/pip-*  # only sqlite-utils' own command would run it
rm "$site"/crsyncer-*.dist-info/direct_url.json  # names the directory that it was built in
sed -i /direct_url.json/d "$site"/crsyncer-*.dist-info/RECORD

# Compiled here: the service may not write there, and a start would compile everything anew. Not the Kubernetes client,
# which is most of the package: only login plug-ins use it, in a process of their own.
python=$home/bin/python
if [ "$arch" != "$host" ]; then
    packaging/unpack-debian.sh "$host" "$work/host" $packages
    python=$work/host/usr/bin/python3.11
fi
find "$home" -name __pycache__ -prune -exec rm -rf {} +
"$python" -I -m compileall -q --invalidation-mode unchecked-hash -s "$root" "$home/python/lib" "$home/lib" -x /kubernetes/

install -D -m 755 packaging/debian/crsyncer "$root/usr/bin/crsyncer"
ln -s crsyncer "$root/usr/bin/kubectl-crsyncer"
install -D -m 644 -t "$root/usr/lib/systemd/system" systemd/crsyncer*.service systemd/crsyncer*.path
install -D -m 644 packaging/debian/sysusers "$root/usr/lib/sysusers.d/crsyncer.conf"
install -D -m 644 systemd/config.yaml "$root/etc/crsyncer/config.yaml"
.venv/bin/python packaging/manual.py "$root" "$SOURCE_DATE_EPOCH"
gzip -9n "$root/usr/share/man/man1/crsyncer.1"
ln -s crsyncer.1.gz "$root/usr/share/man/man1/kubectl-crsyncer.1.gz"
mv "$site"/share/doc/crsyncer/* "$root/usr/share/doc/crsyncer/"  # the wheel brings the pages
rm -r "$site/share"
install -D -m 644 LICENSE "$root/usr/share/doc/crsyncer/copyright"

install -D -m 755 -t "$root/DEBIAN" packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm
echo /etc/crsyncer/config.yaml >"$root/DEBIAN/conffiles"
# As Debian's own tools count: files in KiB, everything else as 1. What `du` says depends on the disk.
size=$(find "$root" -type f -printf '%s\n' -o -printf '1024\n' | awk '{kib += int(($1 + 1023) / 1024)} END {print kib}')
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$arch/" -e "s/@PYTHON@/$python_version/" -e "s/@SIZE@/$size/" \
    packaging/debian/control >"$root/DEBIAN/control"
chmod -R g-w,o-w "$root"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p dist
dpkg-deb --root-owner-group --build "$root" "dist/crsyncer_${version}_$arch.deb"
