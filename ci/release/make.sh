#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes every file of a release, of one build tree for each processor: tarball, wheel, Debian package, bill of materials and
# provenance of each, and the sources, checksums and install.sh of all. The same trees and the same commit give the same bytes,
# whatever the time, the directory, the zone and the umask.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: ci/release/make.sh [--arch ARCH]... [--build DIR] [--out DIR] [--builder URI] [--sysroot DIR] [--sign KEY] [--finished]
  --arch ARCH    for this processor, x86_64 or aarch64; more than once for both [default: this machine's, and aarch64
                 where a cross compiler for it is installed]
  --build DIR    the build tree for this machine's processor, and DIR-ARCH for another [default: build/release]; a tree
                 that does not exist is configured for Release
  --out DIR      where the files of the release go [default: build/dist]; a file of the same name is replaced
  --builder URI  who builds, for the provenance [default: urn:scankit:builder:local]
  --sysroot DIR  the root file system of the other processor, with the libraries that are linked [default: one that is
                 made of Debian packages, in $SCANKIT_CACHE]
  --sign KEY     sign SHA256SUMS with this key of ssh-keygen, as SHA256SUMS.sig, for install.sh --signers [default: not signed]
  --finished     take the build trees as they are; without it, what the release needs is built first
SOURCE_DATE_EPOCH is the time of every file in them (default: the time of the last commit).
TEXT
}
say() { printf 'make.sh: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}
build=build/release out=build/dist builder=urn:scankit:builder:local sysroot='' sign='' finished=no archs=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch | --build | --out | --builder | --sysroot | --sign)
      [ $# -ge 2 ] || { usage >&2 && exit 2; }
      [ "$1" != --sign ] || [ -n "$2" ] || die "--sign needs a key"
      case $1 in --arch) archs+=("$2") ;; *) declare "${1#--}=$2" ;; esac
      shift
      ;;
    --finished) finished=yes ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
mkdir -p "$(dirname "$build")" "$out"
build=$(cd "$(dirname "$build")" && pwd)/$(basename "$build") out=$(cd "$out" && pwd) own=$(uname -m)
[ -z "$sign" ] || [ -r "$sign" ] || die "--sign $sign: no such file; ssh-keygen -t ed25519 -f $sign makes a key"
[ -z "$sign" ] || command -v ssh-keygen >/dev/null || die "--sign needs ssh-keygen, which is not installed"
[ -z "$sign" ] || sign=$(realpath "$sign")
[ -z "$sysroot" ] || sysroot=$(cd "$sysroot" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
umask 022
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH

tree_of() { if [ "$1" = "$own" ]; then echo "$build"; else echo "$build-$1"; fi; }

# Which ones, if nobody said it: a release without aarch64 says so.
if [ ${#archs[@]} -eq 0 ]; then
  archs=("$own")
  if [ "$own" != aarch64 ]; then
    if [ $finished = yes ] && [ ! -x "$(tree_of aarch64)/scankit" ]; then
      say "aarch64 is missing: $(tree_of aarch64)/scankit does not exist"
    elif [ $finished = no ] && ! command -v aarch64-linux-gnu-g++ >/dev/null; then
      say "aarch64 is missing: no aarch64-linux-gnu-g++ here (Debian: g++-aarch64-linux-gnu)"
    else
      archs+=(aarch64)
    fi
  fi
fi
for arch in "${archs[@]}"; do
  case $arch in "$own" | aarch64) ;; *) die "--arch $arch: this machine is $own, and make.sh cross-compiles for aarch64 only" ;; esac
done

# Outside a repository, as in the unpacked sources, neither a commit nor its time is known; a zip file begins in 1980.
commit=$(git rev-parse HEAD 2>/dev/null || true)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
version=$(sed -n 's/^project(scankit VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || die "CMakeLists.txt: no line 'project(scankit VERSION ...' with the version"

configure() { # ARCH TREE
  if [ "$1" = "$own" ]; then
    cmake -S . -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSCANKIT_TESTS=OFF >&2
  else (
    . "$here/../fixtures.sh" && . "$here/../fixture_arm64.sh" && sysroot=${sysroot:-$(fx_arm64_root)} &&
      fx_arm64_configure "$PWD" "$2" "$sysroot" >&2
  ) fi
}

# Everything is made in $work and moved when it is complete, so that no half of a release is ever in $out.
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir "$work/made"
for arch in "${archs[@]}"; do
  tree=$(tree_of "$arch")
  if [ $finished = no ]; then
    [ -e "$tree/CMakeCache.txt" ] || configure "$arch" "$tree"
    cmake --build "$tree" --target scankit scankit_shell_files \
      scankit_module_selective_scan_cuda scankit_module_causal_conv1d_cuda >&2
  fi
  bash "$here/one.sh" "$tree" "$work/made" "$version" "$arch" "$commit"
done

if [ -n "$commit" ]; then
  python3 -B "$here/metadata.py" >"$work/PKG-INFO"
  # The commit's files with the commit's time: what was changed since is not in it, and the provenance says that it was.
  git archive --format=tar --prefix="scankit-$version/" --add-file="$work/PKG-INFO" HEAD >"$work/sources.tar"
  gzip -9n <"$work/sources.tar" >"$work/made/scankit-$version.tar.gz"
else
  say "not in a git repository: scankit-$version.tar.gz, the sources, is not made"
fi
install -m 755 "$here/install.sh" "$work/made/install.sh"
for arch in "${archs[@]}"; do
  python3 -B "$here/provenance.py" "$work/made" "scankit-$version-linux-$arch.provenance.json" --version "$version" --arch "$arch" \
    --commit "$commit" --builder "$builder" --build "$(tree_of "$arch")"
done
(cd "$work/made" && sha256sum -- * >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$work/made/"
[ -z "$sign" ] || ssh-keygen -q -Y sign -n scankit-release -f "$sign" "$work/made/SHA256SUMS" ||
  die "ssh-keygen did not sign SHA256SUMS with $sign"
[ -n "$sign" ] || rm -f "$out/SHA256SUMS.sig"  # of an earlier list
mv -f "$work/made"/* "$out/"
cat "$out/SHA256SUMS"
