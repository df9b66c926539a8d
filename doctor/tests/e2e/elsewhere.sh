#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# elsewhere.sh CASE SCANKIT MODULES WORK: --so FILE --from SNAPSHOT: would this file import and run on that machine? The
# machines are recorded ones (tests/machines), of which no file is at hand, and this one as its snapshot tells it.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults.sh
. "$FAULTS/faults.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
name=$1 scankit=$2 MODULES=$3 work=$4/elsewhere_$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$work"
ROOT='' FOUND='' VERDICT=healthy STATUS=0
cpu=$FAULTS/../machines/cpu_torch211/snapshot.json   # Python 3.11, torch 2.11+cu130, no GPU
h200=$FAULTS/../machines/h200_torch211/snapshot.json # Python 3.12, torch 2.11+cu130, one H200
torch=$(fx_torch_env)
tag=$(fx_suffix "$torch/bin/python")
abi=cp$("$torch/bin/python" -c 'import sys; print("%d%d" % sys.version_info[:2])')

examine() { # SNAPSHOT FILE [ARGUMENT...]
  local snapshot=$1 file=$2
  shift 2
  "$scankit" doctor --json --from "$snapshot" --so "$file" "$@" >doctor.json 2>doctor.err && code=0 || code=$?
}
expect() { expect_report doctor.json "$code"; }
refused() { # TEXT
  [ "$code" -eq 2 ] || expect_fail "exit status $code, should be 2: $(cat doctor.err)"
  [ ! -s doctor.json ] || expect_fail "there is a report: $(head -c 300 doctor.json)"
  grep -qF -e "$1" doctor.err || expect_fail "the line does not name $1: $(cat doctor.err)"
}
good() { link_good "selective_scan_cuda$tag" "$torch"; }
stale() { link_stale "selective_scan_cuda$tag" "$torch"; }
wheel() { # NAME FILE: a wheel of one module and the least metadata
  python3 - "$1" "$2" <<'PY'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as zip:
    zip.writestr("m-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    zip.write(sys.argv[2], os.path.basename(sys.argv[2]))
PY
}
taken() { # the snapshot of an environment of this machine
  "$scankit" snapshot --python "$torch/bin/python" --out here.json "$@" 2>/dev/null
}
needs_python_311() { [ "$abi" = cp311 ] || exit 77; }

case_good_file() {
  needs_python_311
  good
  examine "$cpu" "selective_scan_cuda$tag"
  expect
  # A torch name that nobody exports must not pass: the same file asks for one more.
  jq -e '[.not_checked[]?] | length > 0' doctor.json >/dev/null || expect_fail "nothing is said of what was taken on trust"
}
case_good_wheel() {
  needs_python_311
  good
  wheel "m-1-$abi-$abi-linux_x86_64.whl" "selective_scan_cuda$tag"
  examine "$cpu" "m-1-$abi-$abi-linux_x86_64.whl"
  expect
}
case_other_torch() {
  needs_python_311
  stale
  ROOT=torch_version_mismatch VERDICT=broken STATUS=1
  examine "$cpu" "selective_scan_cuda$tag"
  expect
}
case_other_string_abi() {
  needs_python_311
  link_module "selective_scan_cuda$tag" "$torch" "$MODULES/binding-oldabi.o" "$MODULES/scan.o"
  ROOT=abi_cxx11_mismatch VERDICT=broken STATUS=1
  examine "$cpu" "selective_scan_cuda$tag"
  expect
}
case_other_python() {
  needs_python_311
  good
  wheel "m-1-$abi-$abi-linux_x86_64.whl" "selective_scan_cuda$tag"
  ROOT=python_abi_tag_mismatch VERDICT=broken STATUS=1
  examine "$h200" "m-1-$abi-$abi-linux_x86_64.whl"
  expect
}
case_own_name_never_linked() {
  needs_python_311
  link_module "selective_scan_cuda$tag" "$torch" "$MODULES/binding.o"
  ROOT=own_symbol_undefined VERDICT=broken STATUS=1
  examine "$cpu" "selective_scan_cuda$tag"
  expect
}
case_newer_glibc() {
  needs_python_311
  fx_scratch_env "$work/env" bare >/dev/null
  fault_glibc_too_old "$work/env"
  ROOT=glibc_too_old VERDICT=broken STATUS=1
  examine "$cpu" "$(module_file "$work/env")"
  expect
  rm -rf "$work/env"
}
# The recorded machine does not say what its loader finds: no guess. One that does is believed.
case_runtime_of_cuda_12() {
  needs_python_311
  stub_cudart libcudart.so.12 stub
  link_module "selective_scan_cuda$tag" "$torch" "$MODULES/binding.o" "$MODULES/scan.o" "$MODULES/runtime.o" \
    stub/libcudart.so
  VERDICT=unknown STATUS=4
  examine "$cpu" "selective_scan_cuda$tag"
  expect
  grep -q 'libcudart.so.12' doctor.json || expect_fail "the open question is not named"
  taken
  ROOT=missing_cudart VERDICT=broken STATUS=1
  examine here.json "selective_scan_cuda$tag"
  expect
}
case_stored_here() {
  good
  taken
  examine here.json "selective_scan_cuda$tag"
  expect
  stale
  ROOT=torch_version_mismatch VERDICT=broken STATUS=1
  examine here.json "selective_scan_cuda$tag"
  expect
}
# With export tables nothing is taken on trust, and the answer is the loader's own.
case_with_exports() {
  good
  taken --with-exports
  [ "$(stat -c %s here.json)" -lt 6000000 ] || expect_fail "the snapshot has $(stat -c %s here.json) bytes"
  examine here.json "selective_scan_cuda$tag"
  expect
  jq -e '[.not_checked[]? | tostring | select(test("export tables"))] | length == 0' doctor.json >/dev/null ||
    expect_fail "something was taken on trust although the tables are there"
  stale
  ROOT=torch_version_mismatch VERDICT=broken STATUS=1
  examine here.json "selective_scan_cuda$tag"
  expect
  taken --with-exports --redact
  examine here.json "selective_scan_cuda$tag"
  expect
}
case_damaged_exports() {
  good
  taken --with-exports
  jq '.exports.value.libraries[].names = "AAAA"' here.json >cut.json
  VERDICT=healthy STATUS=0
  examine cut.json "selective_scan_cuda$tag"
  [ "$code" -ne 139 ] || expect_fail "it crashed"
  # Damaged tables are no tables: never an excuse to call a name missing.
  jq -e '[.findings[] | select(.severity == "error")] | length == 0' doctor.json >/dev/null ||
    expect_fail "damaged tables became a fault of the file"
}
case_no_such_snapshot() {
  good
  examine none.json "selective_scan_cuda$tag"
  refused none.json
}
case_no_such_file() {
  examine "$cpu" none.so
  refused none.so
}
# Wheels of the package index, for the torch of the recorded machines and for others: no file of ours.
matrix_real_wheels() {
  local wheels=$SCANKIT_CACHE/wheels-elsewhere wish
  for wish in torchvision==0.21.0 torchvision==0.24.0 torchvision==0.26.0 torchaudio==2.9.0 torchaudio==2.11.0; do
    fx_download "$wheels" --python-version 312 --implementation cp --only-binary=:all: "$wish" || exit 77
  done
  judge() { # WHEEL SNAPSHOT ROOT VERDICT STATUS
    ROOT=$3 VERDICT=$4 STATUS=$5
    examine "$2" "$(echo "$wheels/$1"-*.whl)"
    expect
  }
  judge torchvision-0.21.0 "$h200" torch_version_mismatch broken 1
  judge torchvision-0.24.0 "$h200" torch_version_mismatch broken 1
  judge torchvision-0.26.0 "$h200" '' healthy 0
  judge torchaudio-2.9.0 "$h200" torch_version_mismatch broken 1
  judge torchaudio-2.11.0 "$h200" '' healthy 0
  judge torchvision-0.26.0 "$cpu" python_abi_tag_mismatch broken 1
  jq '.libc.value.version = "2.27"' "$h200" >old.json
  judge torchvision-0.26.0 old.json glibc_too_old broken 1
}
case_with_python_too() {
  examine "$cpu" none.so --python "$torch/bin/python"
  refused --python
}

case $name in
real_wheels) matrix_real_wheels ;;
*) "case_$name" ;;
esac
echo "ok: $name"
