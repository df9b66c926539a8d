#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# targets.sh CASE SCANKIT MODULES WORK: what is not installed here, or is not here at all: --so, --root, --gpu.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults.sh
. "$FAULTS/faults.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
name=$1 scankit=$2 MODULES=$3 work=$4/targets_$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$work"
ROOT='' FOUND='' VERDICT=healthy STATUS=0
env=$(fx_scratch_env "$work/env" pth)
file=$work/built/$(basename "$(module_file "$env")")
mkdir -p "$work/built"
link_good "$file" "$env"

examine() { # ARGUMENT...
  timeout 150 "$scankit" doctor --json --python "$env/bin/python" "$@" >doctor.json 2>doctor.err && code=0 || code=$?
}
refused() { # TEXT: status 2 and nothing on standard output
  [ "$code" -eq 2 ] || expect_fail "exit status $code, should be 2: $(cat doctor.err)"
  [ ! -s doctor.json ] || expect_fail "there is a report: $(head -c 300 doctor.json)"
  grep -qF "$1" doctor.err || expect_fail "the line does not name $1: $(cat doctor.err)"
}

case_good_file() {
  examine --so "$file"
  expect_report doctor.json "$code"
  expect_dated doctor.json "$(basename "$file")" "${FX_TORCH%.*}" new
}
case_good_folder() {
  examine --so "$work/built"
  expect_report doctor.json "$code"
  expect_dated doctor.json "$work/built" "${FX_TORCH%.*}" new
}
# A real wheel of the package index, built for another torch than the one that is installed. Its libraries are no Python
# modules (torch.ops loads them), so that there is no verdict on an import: what is told is for which torch they were built.
case_dating_of_a_real_wheel() {
  wheel=$(fx_extension_wheel) || exit 77
  examine --so "$wheel"
  expect_dated doctor.json "$wheel" 2.6 old
  expect_dated doctor.json torchvision/_C.so 2.6 old
  jq -e '.dating[] | select(.file | endswith(".whl")) | .glibc_min != null and .stable_abi == false' doctor.json >/dev/null ||
    expect_fail "the wheel's own facts are missing: $(jq -c .dating doctor.json)"
  "$scankit" doctor --python "$env/bin/python" --so "$wheel" >doctor.txt 2>/dev/null || true
  grep -qE 'files together: built for torch 2\.[0-9]+.*old string ABI; 2\.11 is installed$' doctor.txt ||
    expect_fail "the text does not date the wheel: $(cat doctor.txt)"
}
case_broken_file() {
  head -c 5000 "$file" >cut.so && mv cut.so "$work/built/cut.so"
  VERDICT=broken STATUS=1 ROOT=corrupt_binary
  examine --so "$work/built/cut.so"
  expect_report doctor.json "$code"
}
case_foreign_tag() {
  mv "$file" "$work/built/selective_scan_cuda.cpython-36m-x86_64-linux-gnu.so"
  VERDICT=broken STATUS=1 ROOT=python_abi_tag_mismatch
  examine --so "$work/built"
  expect_report doctor.json "$code"
}
make_wheel() { # NAME MEMBER: of $file and the least metadata
  python3 - "$1" "$2" "$file" <<'PY'
import sys, zipfile
name, member, file = sys.argv[1:]
with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as zip:
    zip.writestr("m-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    zip.write(file, member)
PY
}
case_good_wheel() {
  make_wheel m-1-py3-none-linux_x86_64.whl "$(basename "$file")"
  mkdir tmp
  TMPDIR=$work/tmp examine --so m-1-py3-none-linux_x86_64.whl
  expect_report doctor.json "$code"
  [ -z "$(ls -A tmp)" ] || expect_fail "the unpacked wheel was left behind: $(ls -A tmp)"
}
case_wheel_of_another_python() {
  make_wheel m-1-cp36-cp36m-linux_x86_64.whl "$(basename "$file")"
  VERDICT=broken STATUS=1 ROOT=python_abi_tag_mismatch
  examine --so m-1-cp36-cp36m-linux_x86_64.whl
  expect_report doctor.json "$code"
}
case_wheel_that_leads_out() {
  make_wheel m-1-py3-none-linux_x86_64.whl ../../evil.so
  examine --so m-1-py3-none-linux_x86_64.whl
  refused evil.so
}
case_no_such_file() {
  examine --so "$work/none.so"
  refused none.so
}
case_no_root() {
  mkdir empty
  examine --root "$work/empty"
  refused empty
}

"case_$name"
rm -rf "$env"
echo "ok: $name"
