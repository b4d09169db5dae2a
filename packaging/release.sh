#!/bin/sh
# Usage: release.sh
# Completes what `make deb` and `make image` left in dist/: a list of the components of each package (SBOM, CycloneDX),
# the release notes from CHANGELOG.md, and the checksums of everything.
set -eu
cd "$(dirname "$0")/../dist"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' ../crsyncer/__init__.py)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for deb in crsyncer_"$version"_*.deb; do
    dpkg-deb --extract "$deb" "$work/$deb"
    {
        printf '{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,\n'
        printf ' "metadata": {"component": {"type": "application", "name": "crsyncer", "version": "%s"}},\n' "$version"
        printf ' "components": [\n'
        python=$(dpkg-deb --field "$deb" Built-Using | sed 's/.*(= \(.*\))/\1/')
        printf '  {"type": "application", "name": "python3.11", "version": "%s", "purl": "pkg:deb/debian/python3.11@%s"}' \
            "$python" "$python"
        for metadata in "$work/$deb"/usr/lib/crsyncer/lib/python3.11/site-packages/*.dist-info/METADATA; do
            name=$(sed -n 's/^Name: //p;T;q' "$metadata" | tr '[:upper:]_.' '[:lower:]--' | tr -d '\r')
            if [ "$name" = crsyncer ]; then continue; fi
            number=$(sed -n 's/^Version: //p;T;q' "$metadata" | tr -d '\r')
            printf ',\n  {"type": "library", "name": "%s", "version": "%s", "purl": "pkg:pypi/%s@%s"}' \
                "$name" "$number" "$name" "$number"
        done
        printf '\n ]}\n'
    } >"${deb%.deb}.cdx.json"
done
awk '/^## /{if (shown++) exit} shown' ../CHANGELOG.md >"crsyncer_$version.md"
find . -maxdepth 1 -type f -name "crsyncer*" -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS
