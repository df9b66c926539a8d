#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# container_test.sh RELEASE WORK: the recipe of the image, judged by hadolint, and built of the files of a release where buildah
# and root are, without a network: the image has nothing but scankit, which runs in it.
set -euo pipefail
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
release=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
if tools=$(fx_container_tools); then
  "$tools/bin/hadolint" "$here/Containerfile" || fail "hadolint has something to say"
else
  echo "not checked: the recipe of the image by hadolint (pip could not fetch it)"
fi
command -v buildah >/dev/null || { echo "not built: the image (buildah is not installed: ci/install-deps.sh installs it)" && exit 0; }
[ "$(id -u)" -eq 0 ] || { echo "not built: the image (without root nothing of it can be mounted)" && exit 0; }

by() { BUILDAH_ISOLATION=chroot buildah --storage-driver vfs --root "$work/images" --runroot "$work/run" "$@"; }
rm -rf --one-file-system "$work/images" "$work/run"
trap 'by rm --all >/dev/null 2>&1 || true; rm -rf --one-file-system "$work/images" "$work/run"' EXIT
by build --pull-never -t scankit --build-arg VERSION="$version" --build-arg ARCH="$(uname -m)" -f "$here/Containerfile" "$release" \
  >"$work/build.txt" 2>&1 || { cat "$work/build.txt" && fail "buildah does not build it"; }
container=$(by from --pull-never localhost/scankit)
root=$(by mount "$container")
[ "$(env -i PATH="$PATH" chroot "$root" /usr/local/bin/scankit --version)" = "scankit $version" ] || fail "the program does not run in the image"
[ -s "$root/usr/local/share/scankit/modules/selective_scan_cuda.abi3.so" ] || fail "the image lacks the modules"
[ "$(by inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' localhost/scankit)" = '[/usr/local/bin/scankit]' ] ||
  fail "the image does not start scankit"
find "$root" ! -type d >"$work/files.txt"
! grep -v "^$root/usr/local/" "$work/files.txt" || fail "the image has the files above in addition to scankit's"
echo "the image is built, and scankit $version runs in it"
