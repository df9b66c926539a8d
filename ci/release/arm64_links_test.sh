#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm64_links_test.sh BUILD: for aarch64, by the cross compiler into BUILD-aarch64: the build is configured, a small program is
# linked with scankit's options and libraries, and qemu runs it; one module is compiled, and runs_anywhere.sh checks both.
# release.arm64 compiles all of it, in minutes.
set -euo pipefail
build=$1-aarch64
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
need_cross_compiler
command -v qemu-aarch64-static >/dev/null || skip "no qemu-aarch64-static here (Debian: qemu-user-static)"
root=$(fx_arm64_root) || skip "no aarch64 root file system could be made"
log=$build.links.log
rm -f "$log"
logged "$log" fx_arm64_configure "$here/../.." "$build" "$root" || { tail -n 30 "$log" && fail "cmake does not configure it"; }
logged "$log" cmake --build "$build" --target scankit_linked_as_shipped scankit_module_causal_conv1d_cuda ||
  { tail -n 30 "$log" && fail "it does not compile or link"; }
qemu-aarch64-static "$build/ci/release/scankit_linked_as_shipped"
# Where one.sh looks for both.
rm -rf "$build/links" && mkdir -p "$build/links/bin" "$build/links/share/scankit/modules"
cp "$build/ci/release/scankit_linked_as_shipped" "$build/links/bin/scankit"
cp "$build/modules/causal_conv1d_cuda.abi3.so" "$build/links/share/scankit/modules/"
is=$(bash "$here/runs_anywhere.sh" "$build/links")
[ "$is" = aarch64 ] || fail "it is for $is"
