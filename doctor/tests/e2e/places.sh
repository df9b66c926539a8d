#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# places.sh CASE SCANKIT MODULES WORK: where environments live, with the real parts of each place: another user's files, folders
# that may not be read, several environments at once, the current folder, a driver's libraries. case_NAME is for CI,
# long_NAME (places_installers.sh) installs uv, conda packages and editable projects.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults.sh
. "$FAULTS/faults.sh"
# shellcheck source=doctor/tests/e2e/faults_truth.sh
. "$FAULTS/faults_truth.sh"
# shellcheck source=doctor/tests/e2e/conda.sh
. "$FAULTS/conda.sh"
# shellcheck source=doctor/tests/e2e/places_installers.sh
. "$FAULTS/places_installers.sh"
# shellcheck source=doctor/tests/e2e/places_driver.sh
. "$FAULTS/places_driver.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
name=$1 scankit=$2 MODULES=$3 work=$4/places_$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd -P)
cd "$work"
ROOT='' FOUND='' VERDICT=healthy STATUS=0
module=selective_scan_cuda
unset VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES

# doctor [NAME=VALUE...] -- ARGUMENT...: doctor.json, doctor.txt and $code.
doctor() {
  local variables=()
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  env ${variables[@]+"${variables[@]}"} "$scankit" doctor --json "$@" >"$work/doctor.json" 2>"$work/doctor.err" && code=0 || code=$?
}
says() { # TEXT: in the text report of the same arguments, given as NAME=VALUE... -- ARGUMENT...
  local wanted=$1 variables=()
  shift
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  env ${variables[@]+"${variables[@]}"} "$scankit" doctor "$@" >"$work/doctor.txt" 2>&1 || true
  grep -qF -- "$wanted" "$work/doctor.txt" || expect_fail "the text does not say '$wanted': $(cat "$work/doctor.txt")"
}
expect() { expect_report "$work/doctor.json" "$code"; }
expect_json() { # MESSAGE FILTER [JQ-ARGUMENT...]
  local message=$1 filter=$2
  shift 2
  jq -e "$@" "$filter" "$work/doctor.json" >/dev/null || expect_fail "$message: $(jq -c '{python, root, findings, unknown}' "$work/doctor.json")"
}
bare() { fx_scratch_env "$1" bare >/dev/null; } # FOLDER: a venv without torch
good_in() { plain_module "$1/$module.abi3.so" "$2" "$FAULTS/module/plain.c"; } # FOLDER PYTHON
# What `import` takes, by the interpreter itself, is the file that the doctor calls selected.
same_winner() { # PYTHON [NAME=VALUE...]
  local python=$1 truth
  shift
  truth=$(env "$@" "$python" -c "import $module; print($module.__file__)") || expect_fail "the import fails: $truth"
  env "$@" "$scankit" snapshot --python "$python" --module $module >snapshot.json 2>snapshot.err
  jq -r --arg m $module '.extensions.value[] | select(.selected and .module == $m) | .path' snapshot.json >winner.txt
  [ "$(realpath "$(cat winner.txt)")" = "$(realpath "$truth")" ] ||
    expect_fail "import takes $truth, the doctor says '$(cat winner.txt)'"
}

# A health check as root, in the environment of somebody who left code that runs at every start.
marking_env() {
  local site
  bare env
  site=$(fx_site env/bin/python)
  echo "import os; open('$work/mark', 'a').write('sitecustomize %d\n' % os.getuid())" >"$site/sitecustomize.py"
  echo "import os; open('$work/mark', 'a').write('pth %d\n' % os.getuid())" >"$site/mark.pth"
  plain_module "$site/$module.abi3.so" env/bin/python - <<C
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void mark(void) {
  FILE* file = fopen("$work/mark", "a");
  if (file) fprintf(file, "extension %d\n", (int)getuid()), fclose(file);
}
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "$module", 0, -1};
PyMODINIT_FUNC PyInit_$module(void) { return PyModule_Create(&definition); }
C
  rm -f mark
}
unmarked() { [ ! -e "$work/mark" ] || expect_fail "$1 ran that user's code: $(cat "$work/mark")"; }
case_root_on_another_users_files() {
  [ "$(id -u)" -eq 0 ] || exit 77 # only root can give files away
  marking_env
  chown -R 12345:12345 env
  env=$work/env/bin/python
  doctor -- --python "$env"
  unmarked doctor
  expect
  says "belongs to user 12345, and scankit runs as root" -- --python "$env"
  says "run scankit as that user, or allow it with --import" -- --python "$env"
  doctor -- --python "$env" --all --module $module
  unmarked 'doctor --all'
  "$scankit" snapshot --import --python "$env" >snapshot.json 2>/dev/null
  unmarked 'snapshot --import'
  jq -e '.observations.state == "not-run" and (.observations.note | test("user 12345.*run scankit as that user"))' snapshot.json \
    >/dev/null || expect_fail "the snapshot does not say why: $(jq -c .observations snapshot.json)"
  "$scankit" validate --quick --python "$env" >validate.txt 2>&1 && code=0 || code=$?
  unmarked validate
  [ "$code" -eq 4 ] && grep -q 'user 12345.*--import' validate.txt || expect_fail "validate: $code, $(cat validate.txt)"
  # Asked for, it runs: the same marks that the interpreter itself makes.
  doctor -- --python "$env" --import
  expect
  for what in pth extension sitecustomize; do
    [ $what = sitecustomize ] && fx_has_sitecustomize "$(fx_python)" && continue
    grep -q "^$what 0$" mark || expect_fail "--import did not run $what"
  done
}
# A fix ends in an import that proves it, and its journal moves files: neither is for root here.
case_root_fixes_nothing_of_others() {
  [ "$(id -u)" -eq 0 ] || exit 77
  marking_env
  local site env=$work/env/bin/python
  site=$(fx_site "$env")
  rm -f mark
  fx_site "$(fx_torch_env)/bin/python" >"$site/shared-torch.pth"
  echo "<html>404</html>" >"$site/$module.abi3.so"
  mkdir -p env/.scankit/journals
  chown -R 12345:12345 env
  find env -type f -exec sha256sum {} + | sort >before
  for command in fix restore; do
    options=()
    [ $command = fix ] && options=(--yes)
    "$scankit" $command "${options[@]}" --python "$env" >$command.txt 2>&1 </dev/null && code=0 || code=$?
    unmarked $command
    [ "$code" -ne 0 ] && grep -q 'belongs to user 12345' $command.txt || expect_fail "$command: $code, $(cat $command.txt)"
  done
  find env -type f -exec sha256sum {} + | sort >after
  diff before after || expect_fail "something of that user's was changed"
  # Root's own environment that takes its torch, or one line of a .pth file, from another user is that user's code too.
  chown -R 0:0 env
  chown 12345 "$site/mark.pth"
  rm -r env/.scankit
  doctor -- --python "$env"
  unmarked 'doctor, beside a .pth file of that user,'
  "$scankit" fix --yes --python "$env" >fix.txt 2>&1 </dev/null && code=0 || code=$?
  unmarked 'fix, beside a .pth file of that user,'
  grep -q 'mark.pth belongs to user 12345' fix.txt || expect_fail "fix: $code, $(cat fix.txt)"
}

# The doctor as somebody else than root, who may not read everything.
as_somebody() { setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps=-all env HOME="$work" "$@"; }
# The interpreter of the distribution, in a folder that is open to all: those of the other tests lie below a home folder.
somebodys_env() {
  [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && [ -x /usr/bin/python3 ] || exit 77
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  chmod 755 "$place"
  cp "$scankit" "$place/scankit"
  scankit=$place/scankit work=$place
  cd "$place"
  /usr/bin/python3 -m venv --without-pip env || exit 77
  good_in "$(fx_site env/bin/python)" "$(fx_python)" # the stable ABI: any Python's headers serve
  env=$place/env/bin/python
  chown -R 12345:12345 .
  as_somebody "$env" -c "import $module" || exit 77
}
somebody_asks() { as_somebody "$scankit" doctor --json --python "$env" "$@" >doctor.json 2>doctor.err && code=0 || code=$?; }
case_unreadable_module() {
  somebodys_env
  local file
  file=$(fx_site "$env")/$module.abi3.so
  somebody_asks
  expect
  chown 0:0 "$file" && chmod 600 "$file"
  as_somebody "$env" -c "import $module" 2>import.txt && expect_fail "the module can be read"
  for way in '' --no-import; do
    VERDICT=unknown STATUS=4 ROOT=''
    # shellcheck disable=SC2086
    somebody_asks $way
    expect
    expect_json "the file and the reason are not named" \
      'any(.unknown[]; (.why | test($f)) and (.why | test("ermission denied")))' --arg f "$module.abi3.so"
  done
}
case_unreadable_site_packages() {
  somebodys_env
  local site
  site=$(fx_site "$env")
  chown 0:0 "$site" && chmod 700 "$site"
  VERDICT=unknown STATUS=4
  somebody_asks --module $module
  expect
  expect_json "the folder and the reason are not named" \
    'any(.unknown[]; (.why | test($f)) and (.why | test("ermission denied")))' --arg f "$site"
  as_somebody "$scankit" doctor --python "$env" >doctor.txt 2>/dev/null || true
  grep -q 'installed: selective' doctor.txt && expect_fail "it claims to know what is installed: $(cat doctor.txt)"
  grep -q '^  module  cannot list' doctor.txt || expect_fail "the text does not say why: $(cat doctor.txt)"
}

# Four places hold a copy; which one import takes changes with the place that it is started in.
case_which_copy_wins() {
  local site minor
  bare env
  env=$work/env/bin/python
  sed -i 's/^include-system-site-packages = .*/include-system-site-packages = true/' env/pyvenv.cfg
  site=$(fx_site "$env")
  minor=$("$env" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  good_in "$work/user/lib/python$minor/site-packages" "$env"
  same_winner "$env" PYTHONUSERBASE="$work/user"
  good_in "$site" "$env"
  same_winner "$env" PYTHONUSERBASE="$work/user"
  good_in "$work/by-variable" "$env"
  same_winner "$env" PYTHONUSERBASE="$work/user" PYTHONPATH="$work/none:by-variable"
  good_in "$work" "$env" # as `setup.py build_ext --inplace` leaves it
  same_winner "$env" PYTHONUSERBASE="$work/user" PYTHONPATH="$work/none:by-variable"
  same_winner "$env" PYTHONSAFEPATH=1 PYTHONPATH=by-variable
  same_winner "$env" PYTHONUSERBASE="$work/user" PYTHONNOUSERSITE=1
  [ "$(wc -l <winner.txt)" -eq 1 ] || expect_fail "more than one winner: $(cat winner.txt)"
}
# The stale copy is the one in front; the good one is named as hidden.
case_stale_copy_in_front() {
  local site stale
  bare env
  env=$work/env/bin/python
  site=$(fx_site "$env")
  good_in "$site" "$env"
  for stale in by-variable .; do
    mkdir -p "$stale"
    echo '<html>404</html>' >"$stale/$module.abi3.so"
    PYTHONPATH=$stale "$env" -c "import $module" 2>import.txt && expect_fail "the stale copy in $stale hides nothing"
    ROOT='several_copies|corrupt_binary' VERDICT=broken STATUS=1
    doctor PYTHONPATH="$([ $stale = . ] || echo "$work/$stale")" -- --python "$env"
    expect
    expect_json "the stale file is not the subject" '.root.subject == $f or (.root.evidence | tostring | contains($f))' \
      --arg f "$(realpath "$stale")/$module.abi3.so"
    rm "$stale/$module.abi3.so"
  done
}
# VIRTUAL_ENV names one environment, PATH another, ./.venv is a third.
case_several_environments() {
  bare one
  bare two
  bare .venv
  mkdir elsewhere
  good_in "$(fx_site two/bin/python)" two/bin/python
  chosen() { # EXPECTED NAME=VALUE...: the Python that the doctor takes
    local expected=$1
    shift
    doctor "$@" --
    expect_json "the Python is not $expected" '.python == $p' --arg p "$expected"
  }
  chosen "$work/one/bin/python" VIRTUAL_ENV="$work/one" PATH="$work/two/bin:$PATH"
  says 'one/bin/python (VIRTUAL_ENV)' VIRTUAL_ENV="$work/one" PATH="$work/two/bin:$PATH" --
  chosen "$work/.venv/bin/python" PATH="$work/two/bin:$PATH"
  (cd elsewhere && chosen "$work/two/bin/python" PATH="$work/two/bin:$PATH")
  # A VIRTUAL_ENV that was removed since is still the one that is meant.
  (cd elsewhere && says "VIRTUAL_ENV: no Python at $work/gone" VIRTUAL_ENV="$work/gone" PATH="$work/two/bin:$PATH" --)
  # Another one that holds torch is named, since that is where the module may have gone.
  fx_site "$(fx_torch_env)/bin/python" >"$(fx_site two/bin/python)/shared-torch.pth"
  says "also holds torch $FX_TORCH" VIRTUAL_ENV="$work/one" PATH="$work/two/bin:$PATH" --
}
# pyenv's real shims: scripts that run pyenv, which picks the version.
case_pyenv_shims() {
  local root=${PYENV_ROOT:-$HOME/.pyenv} versions
  mapfile -t versions < <(find "$root/versions" -mindepth 1 -maxdepth 1 -name '3.1[0-3].*' -printf '%f\n' 2>/dev/null | sort)
  [ -x "$root/libexec/pyenv" ] && [ "${#versions[@]}" -ge 2 ] && [ -x "$root/shims/python" ] || exit 77
  for version in "${versions[@]:0:2}"; do
    echo "$version" >.python-version
    truth=$(env -u PYENV_VERSION PATH="$root/shims:$root/bin:/usr/bin:/bin" python -c 'import os, sys; print(os.path.realpath(sys.executable))')
    doctor -u PYENV_VERSION PATH="$root/shims:/usr/bin:/bin" --
    expect_json "not pyenv's choice $truth" '.python == $p' --arg p "$root/versions/$version/bin/python"
    [ "$(realpath "$root/versions/$version/bin/python")" = "$truth" ] || expect_fail "pyenv runs $truth"
    says "(PATH, through the script $root/shims/python" -u PYENV_VERSION PATH="$root/shims:/usr/bin:/bin" --
  done
}
# A venv without pip, and no uv in it: the command must not be one that this Python does not have.
case_no_pip() {
  bare env
  head -c 100 /dev/urandom >"$(fx_site env/bin/python)/broken.abi3.so"
  local info
  info=$(fx_site env/bin/python)/broken-1.0.dist-info
  mkdir "$info"
  printf 'Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n' >"$info/METADATA"
  printf 'broken.abi3.so,,\nbroken-1.0.dist-info/METADATA,,\n' >"$info/RECORD"
  ROOT=corrupt_binary VERDICT=broken STATUS=1
  doctor -- --python "$work/env/bin/python" --all
  expect
  expect_json "the command uses a pip that is not here" '(.root.fixes[0].command // "") | test("env/bin/python -m pip") | not'
}
# Nobody names torchvision, and it is the one that is broken: built for torch 2.6, beside this torch.
case_third_party_extension() {
  local python site
  fx_scratch_env env plain >/dev/null
  python=env/bin/python site=$(fx_site env/bin/python)
  unzip -q "$(fx_extension_wheel)" -d "$site" || exit 77
  ! "$python" -c "import torch; torch.ops.load_library('$site/torchvision/_C.so')" 2>truth.txt || expect_fail "torchvision's _C loads"
  VERDICT=broken STATUS=1 ROOT=torch_version_mismatch
  for way in --import --no-import; do
    doctor -- --python env/bin/python $way
    expect
    expect_json 'the file is not named' '.root.subject | endswith("torchvision/_C.so")'
  done
}
# An extension whose library lies where no loader looks; its package loads the library first. Without that, it is broken.
case_third_party_loads_by_itself() {
  local site
  fx_scratch_env env plain >/dev/null
  site=$(fx_site env/bin/python)
  mkdir -p "$site/lazy/libs"
  echo 'int lazy_answer(void) { return 42; }' >lazy.c
  gcc -shared -fPIC lazy.c -Wl,-soname,liblazy.so.1 -o "$site/lazy/libs/liblazy-0a1b.so.1"
  ln -s "$site/lazy/libs/liblazy-0a1b.so.1" liblazy.so
  printf 'int lazy_answer(void); int lazy(void) { return lazy_answer(); }\n' >ext.c
  gcc -shared -fPIC ext.c -L. -llazy -L"$(fx_site "$(fx_torch_env)/bin/python")/torch/lib" -Wl,--no-as-needed -lc10 -o "$site/lazy/_C.so"
  printf 'import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), "libs", "liblazy-0a1b.so.1"), ctypes.RTLD_GLOBAL)\n' >"$site/lazy/__init__.py"
  env/bin/python -c "import torch, lazy, ctypes; ctypes.CDLL('$site/lazy/_C.so')" || expect_fail "it does not load"
  doctor -- --python env/bin/python --import
  expect
  rm "$site/lazy/libs/liblazy-0a1b.so.1" "$site/lazy/__init__.py"
  VERDICT=unknown STATUS=4
  doctor -- --python env/bin/python --import
  expect
}

if declare -F "case_$name" >/dev/null; then "case_$name"; else "long_$name"; fi
echo "ok: $name"
