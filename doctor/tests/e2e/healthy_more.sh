# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # healthy.sh sets $work and reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# More healthy environments, sourced by healthy.sh: case_NAME makes $env and sets IMPORT and PREPARE. far_NAME likewise, and
# downloads another torch: label matrix.

# The same file under the stable ABI's suffix, written against Python 3.8's interface.
case_abi3_module() {
  env=$(fx_scratch_env "$work/env" bare) IMPORT='import selective_scan_cuda'
  plain_module "$(fx_site "$env/bin/python")/selective_scan_cuda.abi3.so" "$env/bin/python" "$FAULTS/module/plain.c"
}
# conda's layout: the interpreter beside its libraries, its records in conda-meta, no venv.
case_conda_like_layout() {
  local python real version
  python=$(readlink -f "$(fx_python)")
  real=$(dirname "$(dirname "$python")")
  # Debian's Python looks for its packages in folders of its own, wherever it lies; conda's never does.
  [ "$real" != /usr ] || { echo "SKIP: the only Python here is the system's"; exit 77; }
  version=$("$python" -c 'import platform; print(platform.python_version())')
  env=$work/env IMPORT='import torch, selective_scan_cuda'
  mkdir -p "$env/bin" "$env/conda-meta"
  cp -al "$real/lib" "$env/lib" 2>/dev/null || cp -a "$real/lib" "$env/lib"
  cp "$python" "$env/bin/python${version%.*}" && ln -s "python${version%.*}" "$env/bin/python"
  [ -d "$real/include" ] && ln -s "$real/include" "$env/include"
  echo "{\"name\": \"python\", \"version\": \"$version\", \"channel\": \"conda-forge\"}" >"$env/conda-meta/python-$version-0.json"
  : >"$env/conda-meta/history"
  "$env/bin/python" -c 'import sys; sys.exit(sys.prefix != sys.argv[1])' "$env" || exit 77
  fx_site "$(fx_torch_env)/bin/python" >"$(fx_site "$env/bin/python")/shared-torch.pth"
  link_good "$(module_file "$env")" "$env"
  PREPARE="CONDA_PREFIX=$env"
}
# Its records speak of another torch and another CUDA; every name that it asks for is there.
case_older_build_that_still_loads() {
  case_good_module
  local site
  site=$(fx_site "$env/bin/python")
  mkdir -p "$site/selective_scan_cuda-1.0+cu118torch2.1.dist-info"
  printf 'Metadata-Version: 2.1\nName: selective-scan-cuda\nVersion: 1.0+cu118torch2.1\n' \
    >"$site/selective_scan_cuda-1.0+cu118torch2.1.dist-info/METADATA"
}
# A package that can do without: the import is guarded, and nothing else asks for the module.
case_masked_optional_import() {
  env=$(fx_scratch_env "$work/env" pth) IMPORT='import torch, zeta'
  mkdir -p "$(fx_site "$env/bin/python")/zeta"
  printf 'try:\n    import selective_scan_cuda\nexcept ImportError:\n    selective_scan_cuda = None\n' \
    >"$(fx_site "$env/bin/python")/zeta/__init__.py"
}
case_user_site() {
  local minor
  env=$(fx_scratch_env "$work/env" pth) IMPORT='import torch, selective_scan_cuda'
  minor=$("$env/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  sed -i 's/^include-system-site-packages = .*/include-system-site-packages = true/' "$env/pyvenv.cfg"
  PREPARE="PYTHONUSERBASE=$work/user"
  link_good "$work/user/lib/python$minor/site-packages/$(basename "$(module_file "$env")")" "$env"
}
# The path holds other people's Pythons and folders that are not there; nothing in them is taken.
case_harmless_pythonpath() {
  case_good_module
  mkdir -p "$work/other/lib" "$work/other/selective_scan_cuda"
  echo 'x = 1' >"$work/other/helper.py"
  head -c 3000 "$(module_file "$env")" >"$work/other/selective_scan_cuda.cpython-36m-x86_64-linux-gnu.so"
  PREPARE="PYTHONPATH=$work/other:$work/none"
}
case_editable_install() {
  env=$(fx_scratch_env "$work/env" pth) IMPORT='import torch, selective_scan_cuda, mamba_ssm_like'
  local site
  site=$(fx_site "$env/bin/python")
  mkdir -p "$work/project/mamba_ssm_like" "$site/mamba_ssm_like-1.0.dist-info"
  echo 'import torch, selective_scan_cuda' >"$work/project/mamba_ssm_like/__init__.py"
  link_good "$work/project/$(basename "$(module_file "$env")")" "$env"
  mkdir -p "$work/project/build/lib.linux-x86_64-cpython-310"
  head -c 3000 "$work/project/$(basename "$(module_file "$env")")" \
    >"$work/project/build/lib.linux-x86_64-cpython-310/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so"
  echo "$work/project" >"$site/__editable__.mamba_ssm_like-1.0.pth"
  printf 'Metadata-Version: 2.1\nName: mamba-ssm-like\nVersion: 1.0\n' >"$site/mamba_ssm_like-1.0.dist-info/METADATA"
  printf '{"url": "file://%s", "dir_info": {"editable": true}}\n' "$work/project" \
    >"$site/mamba_ssm_like-1.0.dist-info/direct_url.json"
}
# pip renames what it is about to remove; a run that was killed leaves the renamed folders behind.
case_leftovers_of_pip() {
  case_good_module
  local site
  site=$(fx_site "$env/bin/python")
  mkdir -p "$site/~orch-2.4.0.dist-info" "$site/~elective_scan_cuda" "$site/__pycache__"
  printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n' >"$site/~orch-2.4.0.dist-info/METADATA"
}
# A CUDA toolkit of another major before everything: torch's DT_RPATH does not care.
case_toolkit_on_ld_library_path() {
  case_good_module
  mkdir -p "$work/cuda-11.8/lib64"
  echo 'int cudaGetLastError(void) { return 0; }' |
    gcc -shared -fPIC -x c - -Wl,-soname,libcudart.so.11.0 -o "$work/cuda-11.8/lib64/libcudart.so.11.0"
  PREPARE="LD_LIBRARY_PATH=$work/cuda-11.8/lib64"
}
# Two names of one file are one copy.
case_two_names_of_one_file() {
  case_good_module
  ln -s "$(basename "$(module_file "$env")")" "$(fx_site "$env/bin/python")/selective_scan_cuda.abi3.so"
}
case_stripped_module() {
  case_good_module
  strip "$(module_file "$env")"
}
# The interpreter of the distribution: no venv, dist-packages, no torch.
case_system_python() {
  [ -x /usr/bin/python3 ] || exit 77
  env=$work/env IMPORT='import json' VERDICT=empty STATUS=4
  mkdir -p "$env/bin"
  ln -s /usr/bin/python3 "$env/bin/python"
}

# far_torch RELEASE STANDARD: the good module built against that release, in an environment that holds it.
far_torch() {
  local wheels site abi python source
  python=$(fx_python)
  wheels=$(fx_far_torch "$1") || exit 77
  env=$(fx_scratch_env "$work/env" bare) IMPORT='import torch, selective_scan_cuda'
  "$python" -m pip --disable-pip-version-check -q --python "$env/bin/python" install --no-index --no-compile \
    --find-links "$wheels" "torch==$1" 'numpy<2'
  site=$(fx_site "$env/bin/python")
  abi=$("$env/bin/python" -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
  for source in binding scan; do
    g++ -std="$2" -O1 -fPIC -w -I"$(python_include "$env/bin/python")" -isystem "$site/torch/include" \
      -isystem "$site/torch/include/torch/csrc/api/include" -D_GLIBCXX_USE_CXX11_ABI="$abi" \
      -c "$FAULTS/module/$source.cc" -o "$work/$source.o"
  done
  link_module "$(module_file "$env")" "$env" "$work/binding.o" "$work/scan.o"
}
far_torch_1_13() { far_torch 1.13.1 c++17; }
far_torch_2_4() { far_torch 2.4.1 c++17; }
far_torch_2_15() { far_torch 2.15.0 c++20; }
