# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Python packages that are not there: what a package requires, and the package itself. See faults.sh for what a function
# sets.

# The shared environment's own files, as links, without one of its packages: a .pth line would bring it back.
without() { # ENV PACKAGE
  local site
  site=$(fx_site "$1/bin/python")
  rm -r "${site:?}/$2" "$site/$2"-*.dist-info
}

fault_missing_dependency_einops() {
  without "$1" einops
  link_good "$(module_file "$1")" "$1"
  install_mamba "$1"
  IMPORT='import mamba_ssm' ERROR="ModuleNotFoundError: No module named 'einops'" ROOT=missing_python_dependency
  SAYS='pip install .*einops'
}

# Three lines of mamba_ssm fail by it, each at another place of transformers.
fault_missing_dependency_tqdm() {
  link_good "$(module_file "$1")" "$1"
  install_release "$1" mamba-ssm 1.2.0.post1
  install_transformers_4 "$1"
  without "$1" tqdm
  IMPORT='import mamba_ssm' ERROR="No module named 'tqdm'|'tqdm.*' distribution was not found" ROOT=missing_python_dependency
  SAYS='pip install .*tqdm'
}

# torch itself does not start without it.
fault_missing_dependency_of_torch() {
  without "$1" typing_extensions 2>/dev/null || rm "$(fx_site "$1/bin/python")"/typing_extensions.py
  rm -rf "$(fx_site "$1/bin/python")"/typing_extensions-*.dist-info
  link_good "$(module_file "$1")" "$1"
  ERROR="ModuleNotFoundError: No module named 'typing_extensions'" ROOT=missing_python_dependency
  SAYS='pip install .*typing.extensions'
}

# The user's program wants the package, and nobody installed it.
fault_package_not_installed() {
  mkdir -p "$1.project"
  printf 'import torch\nfrom mamba_ssm import Mamba\n' >"$1.project/train.py"
  STARTS_IN=$1.project
  IMPORT='import train' ERROR="ModuleNotFoundError: No module named 'mamba_ssm'" ROOT=package_not_installed
  SAYS='scankit fix --python .* --package mamba-ssm$'
}
