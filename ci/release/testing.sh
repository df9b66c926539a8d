# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of a release begin with: sourced by them, and sets `here` (this directory) and `version` (of the sources).
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
# shellcheck source=ci/fixture_arm64.sh
. "$here/../fixture_arm64.sh"
# shellcheck source=ci/fixture_roots.sh
. "$here/../fixture_roots.sh"
# shellcheck disable=SC2034  # for who sources this
version=$(sed -n 's/^project(scankit VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")

fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}
# What is missing here; not a failure of what is tested.
skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}
# empty_folder DIR: prints its path, absolute.
empty_folder() {
  rm -rf --one-file-system "${1:?}" && mkdir -p "$1" && (cd "$1" && pwd)
}
need_cross_compiler() {
  command -v aarch64-linux-gnu-g++ >/dev/null || skip "no aarch64-linux-gnu-g++ here (Debian: g++-aarch64-linux-gnu)"
}
