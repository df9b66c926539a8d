#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes every file of a release out of one build tree: tarball, wheel, Debian package, sources, bill of materials,
# provenance, checksums and install.sh. The same tree and the same commit give the same bytes, whatever the time, the
# directory, the zone and the umask.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: ci/release/make.sh [--build DIR] [--out DIR] [--builder URI] [--finished]
  --build DIR    a build tree (default: build/release, configured for Release if it does not exist)
  --out DIR      where the files of the release go (default: build/dist); a file of the same name is replaced
  --builder URI  who builds, for the provenance (default: urn:scankit:builder:local)
  --finished     take the build tree as it is; without it, what the release needs is built first
SOURCE_DATE_EPOCH is the time of every file in them (default: the time of the last commit).
TEXT
}
die() {
  printf 'make.sh: %s\n' "$*" >&2
  exit 1
}
build=build/release out=build/dist builder=urn:scankit:builder:local finished=no
while [ $# -gt 0 ]; do
  case $1 in
    --build | --out | --builder)
      [ $# -ge 2 ] || { usage >&2 && exit 2; }
      declare "${1#--}=$2" && shift
      ;;
    --finished) finished=yes ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
mkdir -p "$build" "$out"
build=$(cd "$build" && pwd) out=$(cd "$out" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
umask 022
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH

# Outside a repository, as in the unpacked sources, neither a commit nor its time is known; a zip file begins in 1980.
commit=$(git rev-parse HEAD 2>/dev/null || true)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
version=$(sed -n 's/^project(scankit VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || die "CMakeLists.txt: no line 'project(scankit VERSION ...' with the version"

if [ $finished = no ]; then
  [ -e "$build/CMakeCache.txt" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSCANKIT_TESTS=OFF >&2
  cmake --build "$build" --target scankit scankit_shell_files \
    scankit_module_selective_scan_cuda scankit_module_causal_conv1d_cuda >&2
fi
[ -x "$build/scankit" ] || die "$build/scankit does not exist; leave out --finished, or build it first"

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/root" >/dev/null
arch=$(bash "$here/runs_anywhere.sh" "$work/root") || exit 1
name=scankit-$version-linux-$arch

# The provenance may not name a commit that the program is not of.
built=$("$work/root/bin/scankit" --version --json | sed -n 's/^ *"commit": "\([0-9a-f]*\)".*/\1/p')
[ "$built" = "$commit" ] || die "$build/scankit is of commit ${built:-unknown}, the sources are at ${commit:-no commit}; leave out --finished, or build it again"

# Everything is made in $work and moved when it is complete, so that no half of a release is ever in $out.
mkdir "$work/made"
python3 -B "$here/tarball.py" "$work/root" "$work/made/$name.tar.gz" "$name" LICENSE README.md
python3 -B "$here/wheel.py" "$work/root" "$work/made" "$arch"
bash "$here/deb.sh" "$work/root" "$work/made" "$version" "$arch"
if [ -n "$commit" ]; then
  python3 -B "$here/metadata.py" >"$work/PKG-INFO"
  # The commit's files with the commit's time: what was changed since is not in it, and the provenance says that it was.
  git archive --format=tar --prefix="scankit-$version/" --add-file="$work/PKG-INFO" HEAD >"$work/sources.tar"
  gzip -9n <"$work/sources.tar" >"$work/made/scankit-$version.tar.gz"
else
  echo "make.sh: not in a git repository: scankit-$version.tar.gz, the sources, is not made" >&2
fi
install -m 644 "$work/root/share/scankit/scankit.spdx.json" "$work/made/$name.spdx.json"
install -m 755 "$here/install.sh" "$work/made/install.sh"
python3 -B "$here/provenance.py" "$work/made" "$name.provenance.json" --version "$version" --arch "$arch" \
  --commit "$commit" --builder "$builder" --build "$build"
(cd "$work/made" && sha256sum -- * >"$work/SHA256SUMS")
mv "$work/SHA256SUMS" "$work/made/"
mv -f "$work/made"/* "$out/"
cat "$out/SHA256SUMS"
