#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# artifacts_test.sh BUILD WORK: the files of a release for x86_64, made twice of one build tree, are the same bytes, agree with each other,
# and work: the wheel by pip and uv, the Debian package in another release, the program without any library.
set -euo pipefail
build=$(cd "$1" && pwd)
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
work=$(empty_folder "$2")
trap 'rm -rf "$work/another place" "$work/root" "$work/bare"' EXIT
name=scankit-$version-linux-x86_64

# Who commits after building has a program of another commit, of which make.sh rightly makes nothing.
"$build/scankit" --version --json | grep -q "\"commit\": \"$(git -C "$here" rev-parse HEAD)\"" ||
  skip "the program is of another commit than the sources; build it again"

# Everything that may differ between two builders differs.
bash "$here/make.sh" --build "$build" --arch x86_64 --out "$work/one" --finished >/dev/null
(
  umask 077
  mkdir -p "$work/another place/tmp" && cd "$work/another place"
  export TZ=Asia/Tokyo LC_ALL=C.UTF-8 PYTHONHASHSEED=7 TMPDIR="$work/another place/tmp"
  bash "$here/make.sh" --build "$build" --arch x86_64 --out out --finished >/dev/null
)
diff -r "$work/one" "$work/another place/out" || fail "two runs made different files"
[ "$(find "$work/one" -type f | wc -l)" -eq 8 ] || fail "a release is 8 files: $(ls "$work/one")"
(cd "$work/one" && sha256sum --check --strict --quiet SHA256SUMS)

python3 -B "$here/consistent.py" "$work/one" "$(git -C "$here" rev-parse HEAD)" || fail "the files of the release disagree"

# What make.sh signs, install.sh takes.
if command -v ssh-keygen >/dev/null; then
  ssh-keygen -q -t ed25519 -N '' -f "$work/key"
  { printf 'releases namespaces="scankit-release" ' && cat "$work/key.pub"; } >"$work/signers"
  bash "$here/make.sh" --build "$build" --arch x86_64 --out "$work/signed" --finished --sign "$work/key" >/dev/null
  sh "$work/signed/install.sh" --signers "$work/signers" --prefix "$work/prefix" >/dev/null || fail "install.sh refuses what make.sh --sign signed"
else
  echo "not checked: that a release can be signed (no ssh-keygen)"
fi

# Nothing of an archive belongs to the user who made it, is later than the commit, or is outside its directory.
tar -tvzf "$work/one/$name.tar.gz" >"$work/list.txt"
! grep -vE "^-rw(xr-xr-x|-r--r--) 0/0 .* $name/(bin|share|LICENSE|README\.md)" "$work/list.txt" || fail "the lines above do not belong in $name.tar.gz"
[ "$(stat -c %s "$build/scankit")" -le 12000000 ] || fail "the program is larger than 12 MB"
tar -xzf "$work/one/$name.tar.gz" -C "$work" "$name/bin/scankit"
cmp "$work/$name/bin/scankit" "$build/scankit"

# The sources build: what pip reads of them is in them, in the first directory.
tar -tzf "$work/one/scankit-$version.tar.gz" >"$work/sources.txt"
for file in PKG-INFO pyproject.toml CMakeLists.txt LICENSE ci/release/make.sh; do
  grep -qxF "scankit-$version/$file" "$work/sources.txt" || fail "the sources lack $file"
done

# Without any library: no libc, no shell, no /proc, no /etc.
if [ "$(id -u)" -eq 0 ]; then
  mkdir "$work/bare" && cp "$work/$name/bin/scankit" "$work/bare/"
  [ "$(env -i PATH="$PATH" chroot "$work/bare" /scankit --version)" = "scankit $version" ] || fail "the program does not run without any library"
  env -i PATH="$PATH" chroot "$work/bare" /scankit explain torch_version_mismatch >"$work/explained.txt" || fail "nor does explain"
else
  echo "not checked: that it runs without any library (needs root)"
fi

deb=$work/one/scankit_${version}_amd64.deb
if command -v lintian >/dev/null; then
  lintian --fail-on error,warning --suppress-tags bogus-mail-host-in-debian-changelog "$deb" >"$work/lintian.txt" 2>&1 ||
    { cat "$work/lintian.txt" && fail "lintian has something to say"; }
else
  echo "not checked: the Debian package by lintian (not installed)"
fi
# By dpkg of another release: what it installs runs, finds its modules, and goes away without a trace.
if [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then
  cp -a "$(fx_foreign_root)" "$work/root"
  cp "$deb" "$work/root/tmp/scankit.deb"
  inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$work/root" "$@"; }
  inside dpkg -i /tmp/scankit.deb >"$work/dpkg.txt" 2>&1 || { cat "$work/dpkg.txt" && fail "dpkg does not install it"; }
  [ "$(inside scankit --version)" = "scankit $version" ] || fail "the installed program does not run"
  inside dpkg --verify scankit | tee "$work/verify.txt"
  [ ! -s "$work/verify.txt" ] || fail "dpkg --verify finds changed files"
  inside test -s /usr/share/scankit/modules/selective_scan_cuda.abi3.so || fail "the modules are not where scankit looks for them"
  inside dpkg --purge scankit >"$work/dpkg.txt" 2>&1 || { cat "$work/dpkg.txt" && fail "dpkg does not remove it"; }
  ! inside find /usr -path '*scankit*' | grep . || fail "purge left the files above"
else
  echo "not checked: the Debian package in another root (needs root and debootstrap)"
fi

# By pip for musl, and by pip and uv in each Python that is here.
wheel=$(echo "$work"/one/scankit-*.whl)
"$(fx_pip_python)" -m pip install -q --disable-pip-version-check --no-index --no-deps --only-binary :all: \
  --platform musllinux_1_1_x86_64 --target "$work/musl" "$wheel"
[ "$("$work/musl/bin/scankit" --version)" = "scankit $version" ] || fail "the wheel that pip installs for musl does not run"
bash "$here/wheel_test.sh" "$work/wheel" "$wheel"
bash "$here/container_test.sh" "$work/one" "$work/container"
printf '8 files, the same bytes twice: '
(cd "$work/one" && stat -c '%n %s' -- *) | paste -sd ',' | sed 's/,/, /g'
