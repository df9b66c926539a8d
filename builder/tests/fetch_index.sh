#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A build where there is neither pip nor uv: NVRTC's real wheel from a package index on the loopback:  fetch_index.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/checks.sh"
scankit=$1
served=$(fx_packages nvidia-cuda-nvrtc==13.0.88) || { echo "SKIPPED: pip could not fetch NVRTC's wheel" && exit 77; }
wheel=$(basename "$(ls "$served"/nvidia_cuda_nvrtc-13.0.88-*.whl)")
mkdir -p "$work/served" "$work/home/.config/pip" "$work/home/.config/uv" "$work/other"
cp -l "$served/$wheel" "$work/served/" 2>/dev/null || cp "$served/$wheel" "$work/served/"
printf 'not a wheel' >"$work/other/$wheel"
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
serve() { # FOLDER [--html]: sets $index
  python3 -B "$here/fetch_server.py" "$@" >"$work/port" &
  servers+=($!)
  for _ in $(seq 100); do [ -s "$work/port" ] && break || sleep 0.1; done
  index=http://127.0.0.1:$(cat "$work/port")/simple
}
# A machine of its own: no pip, no uv, no Python on PATH, no configuration but what a case writes. sm_88 is what NVRTC 12.9
# does not make, so that the wheel is the one that is served.
build() { # EXPECTED_STATUS [VARIABLE=VALUE ...]
  local status=$1
  shift
  status_is "$status" env -i HOME="$work/home" PATH=/nonexistent "$@" "$scankit" build --toolchain nvrtc-wheel --allow-download \
    --module causal_conv1d_cuda --arch sm_88 --cache-dir "$work/cache" --out "$work/out.so/"
}
# The same on a machine that has no libcurl: in a mount namespace of its own, where an overlay of the library's folder lacks it.
library=$(ldconfig -p 2>/dev/null | sed -n 's/.*libcurl\.so\.4 .*=> //p' | head -n 1)
without_libcurl() {
  # shellcheck disable=SC2016
  unshare -m bash -c 'folder=$1 layer=$2 && shift 2 && mkdir -p "$layer" && mount -t tmpfs none "$layer" && mkdir "$layer/new" "$layer/work" &&
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/new,workdir=$layer/work" "$folder" &&
    rm "$folder"/libcurl*.so.4* && exec "$@"' - "$(dirname "$(readlink -f "$library")")" "$work/layer" "$@"
}
nothing_half() { [ ! -e "$work/cache/toolchains" ] || [ -z "$(ls -A "$work/cache/toolchains")" ]; }

check "no index is named: no build" build 5
check "it says what is missing" says "neither pip nor uv is installed, and no package index is configured"
check "and how to name one" says "PIP_INDEX_URL"
check "an index by http on another machine is refused" build 5 PIP_INDEX_URL=http://index.invalid/simple
check "with the reason" says "http://index.invalid/simple/nvidia-cuda-nvrtc/: only https is supported"
check "and who named it" says "PIP_INDEX_URL"
serve "$work/other"
check "an index with another file is refused" build 5 PIP_INDEX_URL="$index"
check "with both hashes' owner" says "the index has nvidia-cuda-nvrtc==13.0.88 with another sha256"
check "an index without it is refused" build 5 PIP_INDEX_URL="${index%/simple}/none"
check "with the URL and the status" says "/none/nvidia-cuda-nvrtc/: not found (status 404)"
check "nothing half is left" nothing_half

serve "$work/served"
printf '[global]\nindex-url = %s/\n' "$index" >"$work/home/.config/pip/pip.conf"
check "the index of pip.conf brings it (JSON)" build 0
check "with a line a phase" says "querying the index of $work/home/.config/pip/pip.conf for nvidia-cuda-nvrtc"
check "that names the file and its size" says "fetching $wheel (90 MB)"
check "the module is built" says "sm_88"
check "no download is left over" test -z "$(ls -A "$work/cache/downloads")"
check "a second build fetches nothing" build 0
check "and says nothing of it" sh -c "! grep -q asking '$work/err'"

rm -rf "$work/cache"
if [ -n "$library" ] && without_libcurl true 2>/dev/null; then
  check "without libcurl nothing is fetched" status_is 5 without_libcurl env -i HOME="$work/home" PATH=/nonexistent "$scankit" \
    build --toolchain nvrtc-wheel --allow-download --module causal_conv1d_cuda --arch sm_88 --cache-dir "$work/cache" --out "$work/out.so/"
  check "by its name" says "libcurl.so.4 was not found, and no other"
  check "with what to do" says "install it (Debian: libcurl4, others: libcurl), or install pip or uv, which do not need it"
  check "nothing half is left" nothing_half
else
  echo "note: no library can be taken away here: a machine without libcurl is not tried"
fi
rm -rf "$work/cache" "$work/home/.config/pip"
serve "$work/served" --html
printf '[[index]]\nurl = "%s"\ndefault = true\n' "$index" >"$work/home/.config/uv/uv.toml"
check "the index of uv.toml brings it (HTML)" build 0
check "by uv's file" says "querying the index of $work/home/.config/uv/uv.toml"
end
