#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm64_test.sh BUILD WORK: the files of a release for aarch64, compiled here by the cross compiler into BUILD-aarch64, are the
# same bytes twice, and work where qemu runs that processor: in a root with nothing but the program, by install.sh, dpkg and
# pip, and beside a real torch of that processor.
set -euo pipefail
build=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") # need not exist
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
work=$(empty_folder "$2")
trap 'rm -rf "$work/another place" "$work/root" "$work/bare"' EXIT
need_cross_compiler
root=$(fx_arm64_root) || skip "no aarch64 root file system could be made"
why=$(fx_arm64_runs "$root") || skip "$why"
name=scankit-$version-linux-aarch64

bash "$here/make.sh" --arch aarch64 --build "$build" --out "$work/one" >/dev/null 2>"$work/make.txt" ||
  { tail -n 20 "$work/make.txt" && fail "make.sh --arch aarch64 failed"; }
# Everything that may differ between two builders differs.
(
  umask 077
  mkdir -p "$work/another place/tmp" && cd "$work/another place"
  export TZ=Asia/Tokyo LC_ALL=C.UTF-8 PYTHONHASHSEED=7 TMPDIR="$work/another place/tmp"
  bash "$here/make.sh" --arch aarch64 --build "$build" --out out --finished >/dev/null
)
diff -r "$work/one" "$work/another place/out" || fail "two runs made different files"
[ "$(find "$work/one" -type f | wc -l)" -eq 8 ] || fail "a release is 8 files: $(ls "$work/one")"
(cd "$work/one" && sha256sum --check --strict --quiet SHA256SUMS)
python3 -B "$here/consistent.py" "$work/one" "$(git -C "$here" rev-parse HEAD)" || fail "the files of the release disagree"
tar -xzf "$work/one/$name.tar.gz" -C "$work" "$name"
readelf -hW "$work/$name/bin/scankit" | grep -q 'Machine: *AArch64' || fail "the program is for another processor"
[ "$(stat -c %s "$work/$name/bin/scankit")" -le 12000000 ] || fail "the program is larger than 12 MB"
deb=$work/one/scankit_${version}_arm64.deb
if command -v lintian >/dev/null; then
  lintian --fail-on error,warning --suppress-tags bogus-mail-host-in-debian-changelog "$deb" >"$work/lintian.txt" 2>&1 ||
    { cat "$work/lintian.txt" && fail "lintian has something to say"; }
fi

# Without any library: no libc, no shell, no /etc.
mkdir -p "$work/bare/proc" "$work/bare/dev" && cp "$work/$name/bin/scankit" "$work/bare/"
[ "$(fx_arm64 "$work/bare" /scankit --version)" = "scankit $version" ] || fail "the program does not run without any library"

cp -a --reflink=auto "$root" "$work/root"
mkdir "$work/root/release" && cp "$work"/one/* "$work/root/release/"
inside() { fx_arm64 "$work/root" "$@"; }
inside /bin/dash /release/install.sh --prefix /opt/scankit >"$work/install.txt" || fail "install.sh does not install it: $(cat "$work/install.txt")"
[ "$(inside /opt/scankit/bin/scankit --version)" = "scankit $version" ] || fail "what install.sh installed does not run"
inside dpkg -i "/release/${deb##*/}" >"$work/dpkg.txt" 2>&1 || { cat "$work/dpkg.txt" && fail "dpkg does not install it"; }
[ "$(inside scankit --version)" = "scankit $version" ] || fail "the installed program does not run"
inside dpkg --purge scankit >"$work/dpkg.txt" 2>&1 || { cat "$work/dpkg.txt" && fail "dpkg does not remove it"; }
! inside find /usr /var -path '*scankit*' | grep . || fail "purge left the files above"
inside python3 -m venv /env >"$work/venv.txt" 2>&1 || { cat "$work/venv.txt" && fail "no venv could be made"; }
wheel=$(basename "$work"/one/scankit-"$version"-py3-none-*.whl)
inside /env/bin/python -m pip install -q --no-index --disable-pip-version-check "/release/$wheel" >"$work/pip.txt" 2>&1 || { cat "$work/pip.txt" && fail "pip does not install the wheel"; }
[ "$(inside /env/bin/scankit --version)" = "scankit $version" ] || fail "the wheel's program does not run"
# Beside this machine's own, where that was built of this commit: one directory, two statements of provenance.
if "$build/scankit" --version --json 2>/dev/null | grep -q "\"commit\": \"$(git -C "$here" rev-parse HEAD)\""; then
  bash "$here/make.sh" --build "$build" --out "$work/both" --finished >/dev/null
  [ "$(find "$work/both" -type f | wc -l)" -eq 13 ] || fail "a release for both is 13 files: $(ls "$work/both")"
  python3 -B "$here/consistent.py" "$work/both" "$(git -C "$here" rev-parse HEAD)" || fail "the files of both disagree"
  cmp "$work/one/$name.tar.gz" "$work/both/$name.tar.gz" || fail "beside another processor it is another archive"
else
  echo "not checked: a release for both processors ($build/scankit is not of this commit)"
fi
printf '8 files for aarch64, the same bytes twice: '
(cd "$work/one" && stat -c '%n %s' -- *) | paste -sd ',' | sed 's/,/, /g'
