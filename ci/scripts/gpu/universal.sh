#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# universal.sh --scankit FILE [--python P] [--wheel FILE]
# On a machine with a GPU, better two: the universal module's promises that need one. Its cubin, then its PTX alone, which the
# driver must translate; with --wheel (ci/release/wheel.sh --arch release -- --allow-download) also the module that a user of the wheel
# gets, as it is and on a GPU newer than all of its cubins. Exit status: the first failing step's; 77 where torch sees no GPU.
set -uo pipefail
# shellcheck source=ci/scripts/gpu/begin.sh
. "$(dirname "$0")/begin.sh" --wheel "$@"
wheel=${option:+$(readlink -f "$option")}
cd "$(dirname "$0")/../../.." || exit 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1
tests=kernels/selective_scan/binding_universal
"$python" -c 'import torch; print(torch.__version__, [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())])'

# What the driver's translation costs the first call, with nothing in its cache.
warmed='import time, torch, selective_scan_cuda as m; torch.ones(1, device="cuda"); t = time.perf_counter(); m.warm()
print(f"first use: {time.perf_counter() - t:.2f} s")'

step "$scankit" build --python "$python" --arch native --cache-dir "$work/cache" --out "$work/native/"
step env PYTHONPATH="$work/native" "$python" -c "$warmed"
step env PYTHONPATH="$work/native" "$python" $tests/universal_device_test.py

step "$scankit" build --python "$python" --arch compute_75 --cache-dir "$work/cache" --out "$work/ptx/"
step env PYTHONPATH="$work/ptx" CUDA_CACHE_DISABLE=1 "$python" -c "$warmed"
step env PYTHONPATH="$work/ptx" CUDA_CACHE_PATH="$work/jit" "$python" -c "$warmed"
step env PYTHONPATH="$work/ptx" CUDA_CACHE_PATH="$work/jit" "$python" $tests/device_test.py
step env PYTHONPATH="$work/ptx" CUDA_CACHE_PATH="$work/jit" "$python" $tests/universal_device_test.py

if [ -n "$wheel" ]; then
  env=$work/env
  "$python" -m venv --without-pip "$env" || exit 3
  site=$(echo "$env"/lib/python*/site-packages)
  "$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/torch-env.pth"
  step "$python" -m pip --python "$env/bin/python" install --no-index --quiet "$wheel"
  tag=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
  echo '<!DOCTYPE html>' >"$site/selective_scan_cuda$tag"
  # No compiler is asked: PATH holds none, and the cache cannot be written.
  step env -i HOME="$work" PATH=/nonexistent LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" "$env/bin/scankit" fix \
    --python "$env/bin/python" --cache-dir /proc/none --yes
  step env "$env/bin/python" $tests/device_test.py
  step env "$env/bin/python" $tests/universal_device_test.py
  mkdir "$work/newer"
  step "$python" kernels/without_cubins.py "$site/selective_scan_cuda.abi3.so" "$work/newer/selective_scan_cuda.abi3.so"
  step env PYTHONPATH="$work/newer" CUDA_CACHE_PATH="$work/jit2" "$env/bin/python" -c "$warmed"
  step env PYTHONPATH="$work/newer" CUDA_CACHE_PATH="$work/jit2" "$env/bin/python" $tests/universal_device_test.py
fi
echo "1 passed, 0 failed"
