#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# roots.sh RELEASE WORK [ROOT]...: what the files of a release (make.sh) do in root file systems with other C libraries, Pythons
# and processors: installed by install.sh and by pip, a half of a module in an environment with a real torch found by doctor,
# replaced by fix, and its results checked by validate. Prints a Markdown table with the seconds of each, of the clock and of a
# processor, and the load at the end; kept as WORK/roots.md. ROOT: bullseye bookworm trixie sid musl aarch64 [default: all].
# Needs root, and some 3 GB for each. WORK/cache keeps the device code that fix compiles between runs.
set -euo pipefail
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
why=$(fx_inside_runs) || skip "$why"
# In a mount namespace of our own: what is mounted ends with us.
[ "${ROOTS_INSIDE:-}" ] || exec env ROOTS_INSIDE=1 unshare --mount --propagation private bash "$0" "$@"
[ -e "$1/SHA256SUMS" ] || skip "$1 has no release: ci/release/make.sh makes it, or release.arm64 after a build of this commit"
release=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
shift 2
roots=("$@")
[ $# -gt 0 ] || roots=(bullseye bookworm trixie sid musl aarch64)
mkdir -p "$work/cache" # of device code: each root with an NVRTC would compile the same
away() { umount -q -R "$work/root" 2>/dev/null || true; }
trap 'away; rm -rf --one-file-system "$work/root" "$work/changes" "$work/spare"' EXIT
failures=0 rows=()

# step STATUS PATTERN COMMAND...: inside; it ends with that status and says that. Adds a cell: its seconds, and those of a
# processor, which a busy machine does not change much; or that it failed.
step() {
  local status=0 took
  local -x TIMEFORMAT='%1R %1U %1S'
  { time "$enter" "$work/root" "${@:3}" >"$work/said.txt" 2>&1 </dev/null || status=$?; } 2>"$work/time.txt"
  took=$(awk '{ printf "%.1f (%.1f)", $1, $2 + $3 }' "$work/time.txt")
  if [ "$status" -ne "$1" ] || ! grep -qE -- "$2" "$work/said.txt"; then
    printf 'FAILED: %s: status %s, not %s with "%s": %s\n' "$name" "$status" "$1" "$2" "${*:3}" && cat "$work/said.txt"
    failures=$((failures + 1)) took=failed
  fi
  row+=" $took |"
}

# enter_root NAME: its root appears as $work/root, with the release in /release; what is written there goes to $work/changes,
# since a copy is gigabytes. Sets `enter` and `python`.
enter_root() {
  local from
  why='' enter=fx_inside python=/env/bin/python
  case $1 in
    aarch64) from=$(fx_arm64_torch) && why=$(fx_arm64_runs "$from") && enter=fx_arm64 ;;
    musl) from=$(fx_musl_root) && python=/opt/python/bin/python3 ;;
    *) from=$(fx_torch_root "$1") ;;
  esac || return 1
  away
  rm -rf --one-file-system "$work/root" "$work/changes" "$work/spare"
  mkdir "$work/root" "$work/changes" "$work/spare" || return 1
  mount -t overlay -o "lowerdir=$from,upperdir=$work/changes,workdir=$work/spare" overlay "$work/root" && mkdir "$work/root/release" "$work/root/cache" &&
    mount --bind "$work/cache" "$work/root/cache" && mount --bind "$release" "$work/root/release" &&
    mount -o remount,ro,bind "$work/root/release" || return 1
  # The other roots have pip already.
  if [ "$1" = aarch64 ]; then
    fx_pip_of "$(fx_pip_python)" install -q --no-compile --no-deps --target "$work"/root/env/lib/python3.*/site-packages pip 2>"$work/pip.txt" ||
      { cat "$work/pip.txt" && why="pip could not fetch itself" && return 1; }
  fi
}

# half_a_module: as an interrupted download leaves it.
half_a_module() { # NAME
  local site whole
  site=$(echo "$work"/root/env/lib/python3.*/site-packages)
  whole=$(find "$work/root/opt/scankit" -name "$1.abi3.so")
  head -c $(($(stat -c %s "$whole") / 2)) "$whole" >"$site/$1.abi3.so"
}

what_is_inside() { # | libc | Python | torch |
  local libc versions
  libc=$("$enter" "$work/root" getconf GNU_LIBC_VERSION 2>/dev/null) ||
    libc="musl $("$enter" "$work/root" /lib/ld-musl-x86_64.so.1 2>&1 | sed -n 's/^Version //p')"
  versions=$("$enter" "$work/root" "$python" -c '
import platform, importlib.util
torch = "none"
if importlib.util.find_spec("torch"):
    import torch
    torch = torch.__version__
print(platform.python_version(), "|", torch)') || return 1
  printf '%s | %s |' "$libc" "$versions"
}

for name in "${roots[@]}"; do
  if ! enter_root "$name"; then
    echo "not run: $name${why:+: $why}"
    failures=$((failures + 1))
    continue
  fi
  inside=$(what_is_inside) || { echo "not run: $name: its Python or its torch does not start" && failures=$((failures + 1)) && continue; }
  row="| $name | $inside"
  step 0 'scankit [0-9.]+ is installed' /bin/sh /release/install.sh --prefix /opt/scankit
  scankit=/opt/scankit/bin/scankit doctor=(doctor --python "$python") validate=(validate --python "$python" --quick)
  module=selective_scan_cuda code='for compute_[0-9]+'
  [ "$name" != aarch64 ] || code='without device code' # its torch is of the CPU
  fix=(fix --python "$python" --yes --cache-dir /cache)
  if [ $enter = fx_arm64 ]; then # qemu is slow
    module=causal_conv1d_cuda doctor+=(--timeout 600) validate+=(--timeout 3600 --module "$module")
  fi
  if [ "$name" = musl ]; then # no torch is for musl: what is asked for is a clear answer
    row+=' - |'
    step 4 'nothing to check: PyTorch is not installed' $scankit "${doctor[@]}"
    step 1 'install torch, then run scankit fix again' $scankit "${fix[@]}"
    row+=' - |'
    step 4 INCONCLUSIVE $scankit "${validate[@]}"
  else
    half_a_module "$module"
    step 1 corrupt_binary /bin/sh -c "$python -m pip install -q --no-index --disable-pip-version-check --no-compile /release/*_$("$enter" "$work/root" uname -m).whl &&
      /env/bin/scankit ${doctor[*]}"
    step 1 corrupt_binary $scankit "${doctor[@]}"
    step 0 "$module.abi3.so,? $code" $scankit "${fix[@]}"
    step 0 'the environment is healthy' $scankit "${doctor[@]}"
    step 0 '' $scankit "${validate[@]}"
  fi
  row+=" $(cut -d ' ' -f 1 /proc/loadavg) |"
  rows+=("$row")
  echo "$row"
  if [ "$name" = bullseye ]; then # a torch with CUDA whose NVRTC is gone, and no GPU: nothing is compiled or downloaded, and it says why
    rm -r "$work"/root/env/lib/python3.*/site-packages/nvidia/cuda_nvrtc
    step 0 'no GPU found, and no code for another machine' $scankit fix --python "$python" --yes --module causal_conv1d_cuda --cache-dir /tmp/empty
    step 0 'the environment is healthy' $scankit "${doctor[@]}"
  fi
done
{
  printf '| root | C library | Python | torch | install.sh | pip, first diagnosis | doctor | fix | doctor again | validate | load |\n'
  printf '|---|---|---|---|---|---|---|---|---|---|---|\n'
  [ ${#rows[@]} -eq 0 ] || printf '%s\n' "${rows[@]}"
} >"$work/roots.md"
[ $failures -eq 0 ] || { echo "$failures failed" && exit 1; }
cat "$work/roots.md"
