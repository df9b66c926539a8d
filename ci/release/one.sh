#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# one.sh BUILD OUT VERSION ARCH COMMIT: the files of a release that are for one processor, of a finished build tree.
set -euo pipefail
build=$1 out=$2 version=$3 arch=$4 commit=$5
here=$(cd "$(dirname "$0")" && pwd)
name=scankit-$version-linux-$arch
die() {
  printf 'one.sh: %s\n' "$*" >&2
  exit 1
}
[ -x "$build/scankit" ] || die "$build/scankit does not exist; leave out --finished, or build it first"

work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/root" >/dev/null
is=$(bash "$here/runs_anywhere.sh" "$work/root") || exit 1
[ "$is" = "$arch" ] || die "$build/scankit is for $is, not for $arch"

# The provenance may not name a commit that the program is not of.
emulator=()
[ "$arch" = "$(uname -m)" ] || emulator=("$(command -v "qemu-$arch-static" || command -v "qemu-$arch")") ||
  die "no qemu-$arch here, which has to ask the program for its commit (Debian: qemu-user-static)"
built=$("${emulator[@]}" "$work/root/bin/scankit" --version --json | sed -n 's/^ *"commit": "\([0-9a-f]*\)".*/\1/p')
[ "$built" = "$commit" ] || die "$build/scankit is of commit ${built:-unknown}, the sources are at ${commit:-no commit}; leave out --finished, or build it again"

python3 -B "$here/tarball.py" "$work/root" "$out/$name.tar.gz" "$name" LICENSE README.md
python3 -B "$here/wheel.py" "$work/root" "$out" "$arch"
bash "$here/deb.sh" "$work/root" "$out" "$version" "$arch"
install -m 644 "$work/root/share/scankit/scankit.spdx.json" "$out/$name.spdx.json"
