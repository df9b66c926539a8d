#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment that all this is for: a real torch and a selective_scan_cuda of ours built for sm_90. Spec and lock of it, the
# manifest of the kernels in the lock, and environments rebuilt from each export that are the same:  lock_torch.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
wheels=$(. "$here/../../ci/fixtures.sh" && fx_wheels) || { echo "SKIPPED: no wheels of torch" && exit 77; }
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
kill "$server"
ln -s "$wheels"/*.whl "$work/served/"
serve
python=$work/env/bin/python
"$tools/bin/python" -m venv --without-pip "$work/env"
# shellcheck disable=SC2046
uv pip install --python "$python" --no-deps $(fx_torch_requirements)
site=$(fx_site "$python")
# The machine that it is for is told by a spec, as an image is built on a machine without a GPU.
printf 'schema: 1\ngpus: [sm_90]\n' >cluster.yaml
check "fix installs a module for the GPUs of a spec" status_is 0 "$scankit" fix --python "$python" --module selective_scan_cuda --for cluster.yaml --yes
check "for sm_90" says sm_90
module=$site/selective_scan_cuda.abi3.so
check "there it is" test -s "$module"

check "init" status_is 0 "$scankit" env init --python "$python"
check "the spec names how it was built" grep -A9 '^  selective_scan_cuda:' scankit.yaml
check "with its code" grep -q 'code: \[sm_90, compute_90\]\|code: \[sm_90' scankit.yaml
check "lock" lock
check "every package has the hash of its wheel" test "$(part '[d["name"] for d in lock["distributions"] if not d["artifact"]]')" = "[]"
check "torch's is the index's" test "$(part 'next(d["artifact"]["sha256"] for d in lock["distributions"] if d["name"] == "torch")')" = \
  "$(sha256sum "$wheels"/torch-"$FX_TORCH"-*.whl | cut -d' ' -f1)"
check "our module is locked" test "$(part '[m["module"] for m in lock["modules"]]')" = "['selective_scan_cuda']"
check "its manifest is the one in the file" "$base" - "$module" <<'PY'
import hashlib, json, sys
lock = json.load(open("scankit.lock"))
(module,) = lock["modules"]
manifest = module["manifest"]
file = open(sys.argv[1], "rb").read()
assert module["path"] == "selective_scan_cuda.abi3.so" and module["distribution"] == "scankit-selective-scan-cuda", module
images = manifest["images"]
assert manifest["module"] == module["module"] and manifest["toolchain"]["sha256"], manifest.keys()
assert images and all(one["kind"] == "cubin" and len(one["sha256"]) == 64 for one in images), images[:3]
(library,) = [one for one in lock["libraries"] if one["path"] == module["path"]]
assert library["sha256"] == hashlib.sha256(file).hexdigest() and "sm_90" in library["code"], library
assert len(lock["libraries"]) > 30 and any(one["path"] == "torch/lib/libtorch_cpu.so" and one["string_abi"] for one in lock["libraries"])
PY
check "whose images it names" status_is 0 "$scankit" build --show-manifest "$module"
check "nothing drifted" status_is 0 "$scankit" env check --python "$python" --fail-on note
for format in requirements pylock; do
  check "export $format" status_is 0 "$scankit" env export $format --python "$python" --out "$format.out"
done
cp requirements.out requirements.txt
cp pylock.out pylock.toml
check "our module goes along as a wheel" test -s scankit-wheels/scankit_selective_scan_cuda-*.whl
rebuilt() { # rebuilt NAME COMMAND...
  local name=$1
  shift
  "$tools/bin/python" -m venv --without-pip "$work/$name"
  P=$work/$name/bin/python check "$name rebuilds it" status_is 0 "$@"
  check "$name: neither spec nor lock differs" status_is 0 "$scankit" env check --python "$work/$name/bin/python" --fail-on note
  check "$name: the same module" cmp "$module" "$(fx_site "$work/$name/bin/python")/selective_scan_cuda.abi3.so"
  check "$name: it computes" "$work/$name/bin/python" - <<'PY'
import torch, selective_scan_cuda
u = torch.ones(1, 2, 4)
a = -torch.ones(2, 3)
b = torch.ones(1, 1, 3, 4)
assert torch.isfinite(selective_scan_cuda.fwd(u, u, a, b, b, None, None, None, False)[0]).all()
PY
  rm -r "${work:?}/$name"
}
rebuilt uv by_uv
rebuilt pylock by_pylock
rebuilt pip by_pip
end
