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
  jq -e '.built_for[] | select(.file | endswith(".whl")) | .glibc_min != null and .stable_abi == false' doctor.json >/dev/null ||
    expect_fail "the wheel's own facts are missing: $(jq -c .built_for doctor.json)"
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
case_folder_of_wheels() {
  mkdir -p dist/of/3.6
  make_wheel dist/m-1-py3-none-linux_x86_64.whl "$(basename "$file")"
  examine --so dist
  expect_report doctor.json "$code"
  make_wheel dist/of/3.6/m-1-cp36-cp36m-linux_x86_64.whl "$(basename "$file")"
  VERDICT=broken STATUS=1 ROOT=python_abi_tag_mismatch
  examine --so dist
  expect_report doctor.json "$code"
}
case_folder_without_either() {
  mkdir nothing && touch nothing/README
  examine --so nothing
  refused 'no shared library or wheel found in it'
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

# An environment copied below a folder, as an unpacked image holds it: its links are absolute, as they were made in it.
copied_root() { # sets $root; the environment is /srv/env in it
  local base
  root=$work/image
  base=$(dirname "$(dirname "$(cat "$env.python")")")
  mkdir -p "$root/srv/env/bin" "$root$base" "$root/etc" "$root/lib/x86_64-linux-gnu" "$root/lib64"
  cp -a "$base/bin" "$base/include" "$root$base/" 2>/dev/null || cp -a "$base/bin" "$root$base/"
  mkdir -p "$root$base/lib"
  cp -al "$base"/lib/libpython* "$root$base/lib/" 2>/dev/null || cp -a "$base"/lib/libpython* "$root$base/lib/" 2>/dev/null || true
  # Of the standard library what tells where it is; all of it is half a gigabyte with its tests.
  local library
  for library in "$base"/lib/python3*; do
    [ -e "$library/os.py" ] || continue
    mkdir -p "$root$library/site-packages"
    cp -a "$library"/os.py "$library"/_sysconfigdata* "$library"/lib-dynload "$root$library/"
  done
  cp -a "$env/pyvenv.cfg" "$env/lib" "$root/srv/env/"
  ln -s "$(cat "$env.python")" "$root/srv/env/bin/python"
  cp -aL /lib/x86_64-linux-gnu/lib{c,m,dl,pthread,rt,util,stdc++,gcc_s}.so.* "$root/lib/x86_64-linux-gnu/" 2>/dev/null || true
  cp -aL /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
  printf 'ID=made\nVERSION_ID=1\nPRETTY_NAME="made"\n' >"$root/etc/os-release"
}
look_into() { # ARGUMENT...
  "$scankit" doctor --json --root "$root" --python /srv/env/bin/python "$@" >doctor.json 2>doctor.err && code=0 || code=$?
}
case_root_with_a_broken_module() {
  : >"$(module_file "$env")"
  copied_root
  VERDICT=broken STATUS=1 ROOT=corrupt_binary
  look_into
  expect_report doctor.json "$code"
  jq -e 'all(.findings[]; .subject | startswith("/srv/env/"))' doctor.json >/dev/null ||
    expect_fail "a path is told as this machine sees it: $(jq -c '[.findings[].subject]' doctor.json)"
}
# A link means what it means inside the root: never a file of this machine. The empty file tells which was read.
case_root_links_stay_inside() {
  local file up=../../../../../../../../../../../..
  copied_root
  file=$(echo "$root"/srv/env/lib/python3.*/site-packages)/$(basename "$(module_file "$env")")
  : >"$root/srv/empty.so"
  : >"$work/empty.so"
  leads_to() { # TARGET YES-OR-NO: corrupt_binary is found
    ln -sf "$1" "$file"
    look_into --module selective_scan_cuda
    local found=no
    jq -e 'any(.findings[]; .cause == "corrupt_binary")' doctor.json >/dev/null && found=yes
    [ "$found" = "$2" ] || expect_fail "a link to $1: the empty file was read: $found, should be $2"
  }
  leads_to /srv/empty.so yes
  leads_to "$up/srv/empty.so" yes
  leads_to "$work/empty.so" no
  leads_to "$up$work/empty.so" no
}
case_root_without_that_python() {
  mkdir -p "$work/image/etc" && echo 'ID=made' >"$work/image/etc/os-release"
  mkdir -p "$work/image/usr/lib" "$work/image/lib"
  "$scankit" doctor --json --root "$work/image" --python /no/such/python >doctor.json 2>doctor.err && code=0 || code=$?
  [ "$code" -eq 2 ] || expect_fail "exit status $code, should be 2"
  grep -q '/no/such/python' doctor.err || expect_fail "the line does not name it: $(cat doctor.err)"
}
case_gpu_none() {
  link_good "$(module_file "$env")" "$env"
  examine --no-import --gpu none
  expect_report doctor.json "$code"
}
# torch of CUDA 13 on a driver of CUDA 12.
case_driver_of_the_old_major() {
  link_good "$(module_file "$env")" "$env"
  VERDICT=broken STATUS=1 ROOT=driver_too_old
  examine --no-import --gpu sm_90 --driver 525.60
  expect_report doctor.json "$code"
  VERDICT=healthy STATUS=0 ROOT=''
  examine --no-import --gpu sm_120 --driver 580.65.06
  expect_report doctor.json "$code"
}
case_options_that_exclude_each_other() {
  local pair
  for pair in '--from x.json --root /' '--from x.json --python p' '--from x.json --all' '--from x.json --import' \
    '--root / --import' '--no-import --import' '--so x.so --import' '--so x.so --module m' '--log x --so x.so' \
    '--log x --root /' '--gpu sm_90a' '--gpu 90' '--gpu sm_9' '--driver r570' '--driver 570' '--driver 570.86.15.1' \
    '--gpu' '--driver'; do
    # shellcheck disable=SC2086
    "$scankit" doctor --json $pair >doctor.json 2>doctor.err && code=0 || code=$?
    [ "$code" -eq 2 ] || expect_fail "\"$pair\" ends with $code: $(head -3 doctor.err)"
    [ ! -s doctor.json ] || expect_fail "\"$pair\" has a report"
    [ "$(grep -c . doctor.err)" -le 3 ] || expect_fail "\"$pair\": not a short answer: $(cat doctor.err)"
    grep -qF -e "${pair%% *}" doctor.err || expect_fail "\"$pair\": the option is not named: $(cat doctor.err)"
  done
}

"case_$name"
rm -rf "$env" "$work/image" # a copied interpreter is half a gigabyte
echo "ok: $name"
