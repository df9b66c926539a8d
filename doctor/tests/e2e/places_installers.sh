# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # places.sh sets $work and reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Environments as installers make them: uv, conda packages, editable projects. Sourced by places.sh; label matrix.

# What the report prints below the first repair, run as it stands.
run_the_command() { # PATH-FOLDER
  jq -r '.root.fixes[0].command' doctor.json >command.sh
  cat command.sh
  PATH=$1:$PATH bash -e command.sh >command.out 2>&1 || expect_fail "the command fails: $(cat command.sh command.out)"
}
# demo_project FOLDER: a project with one small extension, with no torch in it
demo_project() {
  mkdir -p "$1"
  cat >"$1/setup.py" <<'PY'
from setuptools import Extension, setup
setup(name="demo-scan", version="1.0", py_modules=[], ext_modules=[Extension("selective_scan_cuda", ["plain.c"])])
PY
  printf '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n' >"$1/pyproject.toml"
  cp "$FAULTS/module/plain.c" "$1/plain.c"
}

long_uv() {
  local uv wheels file env=$work/env/bin/python
  uv=$(fx_installers)/bin/uv || exit 77
  wheels=$(fx_packages markupsafe==3.0.2) && wheels=$wheels:$(fx_wheels) || exit 77
  export UV_CACHE_DIR=$work/cache UV_OFFLINE=1 UV_FIND_LINKS=${wheels/:/,} UV_NO_INDEX=1
  PATH=$(dirname "$uv"):$PATH # uv is printed where it is on PATH
  "$uv" venv -q --python "$(fx_python)" env
  [ ! -e "$(fx_site "$env")/pip" ] || expect_fail "uv made a venv with pip"
  demo_project demo
  "$uv" pip install -q --python "$env" markupsafe==3.0.2 setuptools wheel
  "$uv" pip install -q --python "$env" --no-build-isolation ./demo
  doctor -- --python "$env" --all
  expect
  says "uv)" -- --python "$env"
  same_winner "$env"
  # 1. A wheel's file is cut short, in place: uv links its files from its cache, so that the cache has it too.
  file=$(echo "$(fx_site "$env")"/markupsafe/_speedups*.so)
  [ "$(stat -c %h "$file")" -gt 1 ] || echo "uv copied: no link to its cache"
  truncate -s 4000 "$file"
  "$env" -c 'import markupsafe._speedups' 2>/dev/null && expect_fail "the file is whole"
  doctor -- --python "$env" --all
  FOUND=corrupt_binary ROOT=corrupt_binary VERDICT=broken STATUS=1 expect
  says "uv cache clean MarkupSafe && uv pip install --python $env --reinstall MarkupSafe==3.0.2" -- --python "$env" --all
  run_the_command "$(dirname "$uv")"
  "$env" -c 'import markupsafe._speedups' || expect_fail "the command did not help"
  doctor -- --python "$env" --all
  expect
  # 2. A module of another project is linked without half of its objects: built again from its sources, by uv.
  python_other() { sed 's/^PyMODINIT/int never_defined(void);\nint use(void) { return never_defined(); }\n&/' "$FAULTS/module/plain.c"; }
  cp -r demo src && (cd src && "$env" setup.py -q sdist -d "$work/sdists" >/dev/null 2>&1)
  export UV_FIND_LINKS="$UV_FIND_LINKS,$work/sdists"
  file=$(jq -r --arg m $module '.extensions.value[] | select(.module == $m and .selected) | .path' snapshot.json)
  python_other | sed "s/selective_scan_cuda/$module/g" | plain_module cut "$env" - -Wl,-z,now
  rm "$file" && cp cut "$file"
  "$env" -c "import $module" 2>import.txt && expect_fail "nothing is undefined"
  doctor -- --python "$env"
  FOUND=own_symbol_undefined ROOT=own_symbol_undefined VERDICT=broken STATUS=1 expect
  jq -r '[.root.fixes[] | select(.kind == "rebuild_package")][0].command' doctor.json >command.sh
  cat command.sh
  grep -q '^uv pip install --python .* --no-build-isolation --no-deps --no-cache --reinstall-package demo-scan /.*/demo$' \
    command.sh || expect_fail "not uv's command: $(cat command.sh)"
  PATH=$(dirname "$uv"):$PATH bash -e command.sh >command.out 2>&1 || expect_fail "the command fails: $(cat command.out)"
  "$env" -c "import $module" || expect_fail "the command did not help"
  doctor -- --python "$env" --all
  expect
}

# A conda prefix of real packages (conda.sh); the printed `conda install` is carried out.
long_conda() {
  local env=$work/prefix/bin/python file
  command -v patchelf >/dev/null || exit 77
  fx_installers >/dev/null || exit 77
  export RATTLER_CACHE_DIR=$work/cache
  conda_channel_of_demo "$work/channel" "$(fx_python)" || expect_fail "no channel"
  conda_channel install "$work/channel" prefix demo-ext || expect_fail "no prefix"
  conda_program bin/conda "$work/channel"
  PATH=$work/bin:$PATH
  [ "$("$env" -c 'import sys, demo_ext.core as c; print(sys.prefix, c.answer)')" = "$work/prefix 42" ] || exit 77
  doctor CONDA_PREFIX="$work/prefix" -- --all
  expect
  expect_json "CONDA_PREFIX does not choose" '.python == $p' --arg p "$env"
  says ', conda)' CONDA_PREFIX="$work/prefix" --
  "$scankit" snapshot --python "$env" --module demo_ext.core >snapshot.json 2>/dev/null
  jq -e --arg lib "$work/prefix/lib/libdemo.so.2" \
    '(.extensions.value[] | select(.module == "demo_ext.core") | .closure | index($lib)) and
     (.python.value.kind == "conda") and any(.distributions.value[]; .name == "demo-ext" and .conda_channel != "")' snapshot.json \
    >/dev/null || expect_fail "\$ORIGIN or the record was not understood: $(jq -c '[.extensions, .distributions]' snapshot.json)"
  # A damaged file comes back with conda's own command, not with pip's.
  file=$work/prefix/lib/python$("$env" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages/demo_ext/core.abi3.so
  head -c 3000 "$file" >cut.so && rm "$file" && cp cut.so "$file"
  doctor -- --python "$env" --all
  FOUND=corrupt_binary ROOT=corrupt_binary VERDICT=broken STATUS=1 expect
  run_the_command "$work/bin"
  grep -qx "conda install --prefix $work/prefix --force-reinstall demo-ext=1.0" command.sh || expect_fail "$(cat command.sh)"
  doctor -- --python "$env" --all
  expect
  # Its library goes: the folder that $ORIGIN leads to is named among those that were searched.
  rm "$work/prefix/lib/libdemo.so.2"
  "$env" -c 'import demo_ext.core' 2>/dev/null && expect_fail "the library is not missed"
  doctor -- --python "$env" --module demo_ext.core
  VERDICT=unknown STATUS=4 expect
  expect_json "the missing library is not named" 'any(.unknown[]; .why | test("libdemo.so.2"))'
  # A venv on top of it is a venv: what it lacks is not conda's to bring.
  "$env" -m venv --without-pip --system-site-packages over
  says ', venv)' -- --python over/bin/python
}

# An extension as `pip install -e` leaves it, by setuptools in each of its ways: a .pth line, a finder, links, a compatible .pth.
long_editable() {
  local env=$work/env/bin/python way project
  bare env
  "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$env" install --no-index --find-links "$(fx_wheels)" \
    setuptools wheel
  editable() { # NAME PIP-OPTION...: installs $project, and lets the interpreter and the doctor agree on the file
    local name=$1
    shift
    "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$env" install --no-index --no-build-isolation \
      --no-deps "$@" -e "$project" >pip.txt 2>&1 || expect_fail "$name: $(tail -n 5 pip.txt)"
    (cd / && "$env" -c "import $module; print($module.__file__)") >truth.txt || expect_fail "$name: the import fails"
    (cd / && "$scankit" snapshot --python "$env" --module $module) >snapshot.json 2>/dev/null
    jq -r --arg m $module '.extensions.value[] | select(.selected and .module == $m) | .path' snapshot.json >winner.txt
    [ "$(realpath "$(cat winner.txt)" 2>/dev/null)" = "$(realpath "$(cat truth.txt)")" ] ||
      expect_fail "$name: import takes $(cat truth.txt), the doctor says '$(cat winner.txt)'"
    cd / || exit
    doctor -- --python "$env"
    cd "$work" || exit
    ROOT='' VERDICT=healthy STATUS=0 FOUND='' expect
    cd / || exit
    doctor -- --python "$env" --all --module other
    cd "$work" || exit
    expect_json "$name: --all leaves the file out" 'any(.audit[]; .file == $f and .distribution == "demo-scan" and .verdict == "loads")' \
      --arg f "$(cat winner.txt)"
    # Its file, damaged, is the one that is named, and the repair builds the project again.
    local file
    file=$(realpath "$(cat truth.txt)")
    cp "$file" whole && echo '<html>' >"$file"
    cd / || exit
    doctor -- --python "$env" --module $module
    cd "$work" || exit
    FOUND=corrupt_binary ROOT=corrupt_binary VERDICT=broken STATUS=1 expect
    expect_json "$name: another file is named" '.root.subject == $f' --arg f "$(cat winner.txt)"
    cp whole "$file"
    echo "editable: $name: $(cat truth.txt)"
    "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$env" uninstall -y demo-scan >/dev/null 2>&1
    find "$project" \( -name '*.so' -o -name build -o -name '*.egg-info' \) -prune -exec rm -r {} +
  }
  project=$work/flat
  demo_project "$project"
  editable 'one module, the default'
  editable 'one module, strict' --config-settings editable_mode=strict
  editable 'one module, compat' --config-settings editable_mode=compat
  project=$work/with_package
  demo_project "$project"
  mkdir -p "$project/demo_scan" "$project/tests"
  echo "import $module" >"$project/demo_scan/__init__.py"
  sed -i 's/py_modules=\[\]/packages=["demo_scan"]/' "$project/setup.py"
  editable 'a package beside the module, a finder'
  editable 'a package beside the module, strict' --config-settings editable_mode=strict
  project=$work/src_layout
  demo_project "$project"
  mkdir -p "$project/src/demo_scan"
  echo "import $module" >"$project/src/demo_scan/__init__.py"
  sed -i 's/py_modules=\[\]/packages=["demo_scan"], package_dir={"": "src"}/' "$project/setup.py"
  editable 'the src layout, a .pth line'
}
