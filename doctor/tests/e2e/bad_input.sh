#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bad_input.sh CASE SCANKIT MODULES WORK: what the doctor is given is itself broken. One clear line, the documented exit
# status, everything else still reported.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults.sh
. "$FAULTS/faults.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
name=$1 scankit=$2 MODULES=$3 work=$4/bad_input_$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$work"
ROOT='' FOUND='' VERDICT='' STATUS=0

run_doctor() { # ARGUMENT...: leaves doctor.json, doctor.err and $code
  timeout 150 "$scankit" doctor --json "$@" >doctor.json 2>doctor.err && code=0 || code=$?
}

# expect_one_line STATUS TEXT: besides the lines of progress one line on stderr, which holds TEXT.
expect_one_line() {
  [ "$code" -eq "$1" ] || expect_fail "exit status $code, should be $1: $(cat doctor.err)"
  grep -vE '^scankit: (reading|importing|asking) ' doctor.err >line.txt || expect_fail "no line says what is wrong"
  [ "$(grep -c . line.txt)" -eq 1 ] || expect_fail "one line expected, got: $(cat line.txt)"
  grep -qF "$2" line.txt || expect_fail "the line does not name $2: $(cat line.txt)"
  [ ! -s doctor.json ] || jq -e . doctor.json >/dev/null || expect_fail "standard output is not JSON"
}

good_env() {
  env=$(fx_scratch_env "$work/env" "${1:-pth}")
  link_good "$(module_file "$env")" "$env"
}

case_missing_path() {
  run_doctor --python "$work/no/such/python"
  expect_one_line 2 "$work/no/such/python"
}
case_directory() {
  run_doctor --python "$work"
  expect_one_line 2 "$work"
}
case_not_a_python() {
  run_doctor --python /bin/true
  expect_one_line 2 /bin/true
}
# A name that nothing here has, nor scankit knows: a slip, not an environment that lacks a module.
case_module_that_means_nothing() {
  good_env
  run_doctor --python "$env/bin/python" --module selective_scan --no-import
  expect_one_line 2 'no module selective_scan; did you mean selective_scan_cuda?'
  run_doctor --python "$env/bin/python" --module my_ext_C --no-import
  expect_one_line 2 'no module my_ext_C'
  run_doctor --python "$env/bin/python" --module einops
  [ "$code" -eq 0 ] || expect_fail "a Python package that is there and imports: status $code, $(cat doctor.err)"
}
# Sources of a stranger: nothing of them is run, followed or believed.
case_hostile_sources() {
  local deep=sources i
  good_env
  mkdir -p sources/csrc outside
  head -c 400000 /dev/urandom >sources/binary.py
  { echo 'from torch.utils.cpp_extension import CUDAExtension'
    printf 'CUDAExtension("m", [\n'
    for i in $(seq 9000); do printf '  "csrc/file%s.cu", "-std=c++14",\n' "$i"; done; } >sources/setup.py
  for i in $(seq 200); do deep=$deep/d; done
  mkdir -p "$deep"
  ln -s / sources/root
  ln -s . sources/loop
  mkfifo sources/csrc/file1.cu
  ln -s /dev/zero sources/csrc/file2.cu
  printf '#!/bin/sh\ntouch %s/ran\n' "$work" | tee sources/nvcc sources/c++ >sources/gcc
  chmod +x sources/nvcc sources/c++ sources/gcc
  # The user named the folder: its setup.py is read, and the programs in it are not started.
  PATH=$work/sources:$PATH run_doctor --python "$env/bin/python" --no-import --sources sources
  [ "$code" -le 4 ] && [ "$code" -ne 3 ] && jq -e . doctor.json >/dev/null || expect_fail "exit status $code: $(cat doctor.err)"
  [ ! -e ran ] || expect_fail "a program of the folder was started"
  head -c 700000 /dev/zero | tr '\0' 'x' >>sources/setup.py
  run_doctor --python "$env/bin/python" --no-import --sources sources
  expect_one_line 2 'setup.py'
  head -c 3000 /dev/urandom >sources/setup.py
  cd sources
  run_doctor --python "$env/bin/python" --no-import
  cd ..
  VERDICT=healthy
  expect_report sources/doctor.json "$code"
  run_doctor --python "$env/bin/python" --no-import --sources no/such/folder
  expect_one_line 2 'no/such/folder'
}
case_script_shim() { # looked through, as pyenv's and conda's wrappers are
  good_env
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$env/bin/python" >shim && chmod +x shim
  run_doctor --python "$work/shim"
  VERDICT=healthy
  expect_report doctor.json "$code"
}
case_script_that_hangs() { # no Python behind it: refused by reading it, never run
  printf '#!/bin/sh\nsleep 1000\n' >shim && chmod +x shim
  run_doctor --python "$work/shim"
  expect_one_line 2 "$work/shim"
}
# Which of the user's modules stops Python is not in any table: inconclusive, with what was seen, and never healthy.
case_startup_hangs() {
  good_env
  printf 'import time\ntime.sleep(1000)\n' | fx_at_start "$env/bin/python"
  timeout 150 "$scankit" doctor --json --timeout 5 --python "$env/bin/python" >doctor.json 2>doctor.err && code=0 || code=$?
  VERDICT=broken STATUS=1 ROOT=import_hang FOUND=import_hang
  expect_report doctor.json "$code"
}
case_startup_crashes() {
  good_env
  printf 'import os\nos.abort()\n' | fx_at_start "$env/bin/python"
  run_doctor --python "$env/bin/python"
  VERDICT=broken STATUS=1 ROOT=import_crash FOUND=import_crash
  expect_report doctor.json "$code"
}
case_torch_cannot_be_imported() {
  good_env plain
  rm "$(fx_site "$env/bin/python")/torch/lib/libc10.so"
  run_doctor --python "$env/bin/python"
  VERDICT='broken' STATUS=1 ROOT=torch_incomplete
  expect_report doctor.json "$code"
}
# An unreadable folder may hide anything: never healthy. Permissions do not hold for root, so this runs as nobody.
case_unreadable_site_packages() {
  local open user=()
  open=$(mktemp -d)
  chmod 755 "$open"
  cp "$scankit" "$open/scankit"
  /usr/bin/python3 -m venv --without-pip "$open/env"
  chmod 000 "$open"/env/lib/python3*/site-packages
  if [ "$(id -u)" -eq 0 ]; then
    chown -R 65534:65534 "$open/env"
    user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  fi
  (cd / && HOME=$open "${user[@]}" "$open/scankit" doctor --json --no-import --python "$open/env/bin/python") \
    >doctor.json 2>doctor.err && code=0 || code=$?
  chmod 755 "$open"/env/lib/python3*/site-packages
  rm -rf "$open"
  VERDICT=unknown STATUS=4
  expect_report doctor.json "$code"
  grep -q 'site-packages' doctor.json || expect_fail "the report does not name the unreadable folder"
}
case_module_vanishes() {
  local file i
  good_env
  file=$(module_file "$env")
  (while sleep 0.01; do mv "$file" "$file.away" && mv "$file.away" "$file"; done) 2>/dev/null &
  local mover=$!
  for i in $(seq 30); do
    run_doctor --no-import --python "$env/bin/python"
    case $code in 0 | 1 | 4) ;; *) kill $mover; expect_fail "run $i: exit status $code: $(cat doctor.err)" ;; esac
    jq -e .verdict doctor.json >/dev/null || { kill $mover; expect_fail "run $i: no report"; }
  done
  kill $mover
}

"case_$name"
rm -rf "${env:-}"
echo "ok: $name"
