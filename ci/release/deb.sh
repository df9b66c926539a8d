#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh ROOT OUT VERSION ARCH: the Debian package of the installed tree ROOT. The program needs no library; the modules
# beside it need the C library that every release has since 2014.
set -euo pipefail
root=$1 out=$2 version=$3
case $4 in x86_64) architecture=amd64 ;; aarch64) architecture=arm64 ;; *) echo "deb.sh: no Debian architecture for $4" >&2 && exit 1 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
maintainer='scankit maintainers <maintainers@scankit.example>'
tree=$(mktemp -d) && trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
doc=$tree/usr/share/doc/scankit
mkdir -p "$tree/usr" "$doc" "$tree/DEBIAN" "$tree/usr/lib/scankit" "$tree/usr/share/lintian/overrides" "$tree/usr/share/zsh"
cp -R "$root/." "$tree/usr"

# Debian's places: compiled files not below share, where scankit looks for them (hence the link), and zsh's own directory.
mv "$tree/usr/share/scankit/modules" "$tree/usr/lib/scankit/modules"
ln -s ../../lib/scankit/modules "$tree/usr/share/scankit/modules"
chmod 644 "$tree"/usr/lib/scankit/modules/*.so
mv "$tree/usr/share/zsh/site-functions" "$tree/usr/share/zsh/vendor-completions"
mv "$tree/usr/share/scankit/scankit.spdx.json" "$doc/"
gzip -9n "$tree/usr/share/man/man1/scankit.1"

cat >"$doc/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: scankit
Comment: The libraries that are linked into the program, with version and
 licence of each, are in scankit.spdx.json in this directory.

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) the scankit authors
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
TEXT
gzip -9n >"$doc/changelog.gz" <<TEXT
scankit ($version) unstable; urgency=medium

  * What changed is told in CHANGELOG.md of the sources.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
cp "$here/lintian-overrides" "$tree/usr/share/lintian/overrides/scankit"
cat >"$tree/DEBIAN/control" <<TEXT
Package: scankit
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Depends: libc6 (>= 2.17)
Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f 1)
Section: devel
Priority: optional
Description: doctor for environments with compiled PyTorch extensions
 scankit says why a compiled CUDA extension of PyTorch does not import or
 computes wrong results, starting with Mamba's selective_scan_cuda. It names
 the root cause with evidence, installs a module that works, and proves that
 the results of the module are correct.
 .
 It is one static program, which uses no part of the environment that may be
 broken.
TEXT
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
# One thread: blocks that several compress are other bytes.
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/scankit_${version}_$architecture.deb" >/dev/null
