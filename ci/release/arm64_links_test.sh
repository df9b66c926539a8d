#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm64_links_test.sh BUILD: for aarch64, by the cross compiler into BUILD-aarch64: the build is configured, a small program is
# linked with scankit's options and libraries, and qemu runs it; one module is compiled, and runs_anywhere.sh checks both.
# release.arm64 compiles all of it, in minutes.
set -euo pipefail
build=$1-aarch64
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
# shellcheck source=ci/fixture_arm64.sh
. "$here/../fixture_arm64.sh"
command -v aarch64-linux-gnu-g++ >/dev/null || { echo "SKIPPED: no aarch64-linux-gnu-g++ here (Debian: g++-aarch64-linux-gnu)" && exit 77; }
command -v qemu-aarch64-static >/dev/null || { echo "SKIPPED: no qemu-aarch64-static here (Debian: qemu-user-static)" && exit 77; }
root=$(fx_arm64_root) || { echo "SKIPPED: no aarch64 root file system could be made" && exit 77; }
log=$build.links.log
rm -f "$log"
logged "$log" fx_arm64_configure "$here/../.." "$build" "$root" || { tail -n 30 "$log" && echo "FAILED: cmake does not configure it" && exit 1; }
logged "$log" cmake --build "$build" --target scankit_linked_as_shipped scankit_module_causal_conv1d_cuda ||
  { tail -n 30 "$log" && echo "FAILED: it does not compile or link" && exit 1; }
qemu-aarch64-static "$build/ci/release/scankit_linked_as_shipped"
# Where one.sh looks for both.
rm -rf "$build/links" && mkdir -p "$build/links/bin" "$build/links/share/scankit/modules"
cp "$build/ci/release/scankit_linked_as_shipped" "$build/links/bin/scankit"
cp "$build/modules/causal_conv1d_cuda.abi3.so" "$build/links/share/scankit/modules/"
is=$(bash "$here/runs_anywhere.sh" "$build/links")
[ "$is" = aarch64 ] || { echo "FAILED: it is for $is" && exit 1; }
