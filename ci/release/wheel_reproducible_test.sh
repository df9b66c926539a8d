#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel_reproducible_test.sh WORK: two wheels of the same sources, in other folders, at another time, in another zone and
# language, with another umask, hash seed and number of compilers, and no compiler cache: the same bytes.
set -euo pipefail
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
work=$(empty_folder "$1")
trap 'rm -rf "$work/one" "$work/another folder" "$work/tmp"' EXIT
mkdir -p "$work/one" "$work/another folder/sources" "$work/tmp"
fx_wheel_tools >/dev/null || skip "pip could not fetch auditwheel and abi3audit"
git -C "$here/../.." ls-files -z -co --exclude-standard | tar -C "$here/../.." --null -T - -cf "$work/sources.tar"
tar -C "$work/one" -xf "$work/sources.tar"
tar -C "$work/another folder/sources" -m -xf "$work/sources.tar"
export CCACHE_DISABLE=1
(cd "$work/one" && bash ci/release/wheel.sh --build "$work/one/build" --out "$work/first")
(
  umask 077
  export TZ=Asia/Tokyo LC_ALL=C TMPDIR=$work/tmp PYTHONHASHSEED=7 CMAKE_BUILD_PARALLEL_LEVEL=1
  cd "$work/another folder/sources"
  bash ci/release/wheel.sh --build "$work/another folder/build" --out "$work/second"
)
sha256sum "$work"/first/*.whl "$work"/second/*.whl
cmp "$work"/first/*.whl "$work"/second/*.whl || {
  for wheel in first second; do unzip -v "$work/$wheel"/*.whl >"$work/$wheel.list"; done
  diff "$work/first.list" "$work/second.list" && exit 1
  exit 1
}
echo "the same $(stat -c %s "$work"/first/*.whl) bytes twice"
