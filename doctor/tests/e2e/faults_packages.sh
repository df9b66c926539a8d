# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# A good module below a package that calls it otherwise, siblings that lack what is taken from them, and how a module
# came to miss its torch. The packages are the index's own, of several releases, without their CUDA build; the module
# below them is ours. See faults.sh for what a function sets.

FX_TRITON=triton==3.6.0 # what FX_TORCH pins

# pip_install ENV WHEEL...: with metadata, as its user would have done.
pip_install() {
  local env=$1
  shift
  "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$env/bin/python" install --no-deps \
    --no-index --no-compile "$@"
}

# By name, as from an index: pip notes of a wheel that is named by its path where it came from.
install_release() { pip_install "$1" --find-links "$(dirname "$(fx_python_wheel "$2" "$3")")" "$2==$3"; } # ENV NAME VERSION

# install_with ENV REQUIREMENT...: from the index by way of the cache.
install_with() {
  local env=$1 folder
  shift
  folder=$(fx_packages "$@") || return 1
  pip_install "$env" --find-links "$folder" "$@"
}

# What `import transformers.generation` of a 4.x needs beside the shared environment's packages.
install_transformers_4() {
  install_with "$1" transformers==4.57.6 huggingface_hub==0.36.2 tokenizers==0.22.2 safetensors==0.8.0 regex requests tqdm \
    filelock pyyaml fsspec urllib3 idna certifi charset-normalizer sympy mpmath networkx jinja2 markupsafe
}

# link_conv ENV ARGUMENTS: a causal_conv1d_cuda whose causal_conv1d_fwd takes that many.
link_conv() {
  local site
  site=$(fx_site "$1/bin/python")
  link_module "$site/causal_conv1d_cuda$(fx_suffix "$1/bin/python")" "$1" "$MODULES/conv$2.o"
}

# The call that mamba_ssm's training path makes, on the smallest tensors; 1.x asks for no GPU before it.
CALL_MAMBA='import torch; from mamba_ssm.ops.selective_scan_interface import mamba_inner_fn as f; t = torch.zeros
f(t(1, 8, 6), t(4, 1, 4), t(4), t(5, 4), t(4, 1), t(3, 4), None, t(4, 2), None, None, t(4))'

mamba_and_conv() { # ENV MAMBA CONV ARGUMENTS
  link_good "$(module_file "$1")" "$1"
  link_conv "$1" "$4"
  install_release "$1" mamba-ssm "$2"
  install_release "$1" causal-conv1d "$3"
  install_transformers_4 "$1"
}

fault_signature_mismatch_5_on_7() {
  mamba_and_conv "$1" 1.1.4 1.4.0 7
  IMPORT=$CALL_MAMBA ERROR='TypeError: causal_conv1d_fwd\(\): incompatible function arguments' ROOT=signature_mismatch
}

fault_signature_mismatch_7_on_8() {
  mamba_and_conv "$1" 1.2.0.post1 1.6.0 8
  IMPORT=$CALL_MAMBA ERROR='TypeError: causal_conv1d_fwd\(\): incompatible function arguments' ROOT=signature_mismatch
}

# Everything that is installed fits; a checkout of an older release in the current folder comes first.
fault_signature_mismatch_current_folder() {
  mamba_and_conv "$1" 1.2.0.post1 1.4.0 7
  mkdir -p "$1.checkout"
  unzip -q "$(fx_python_wheel mamba-ssm 1.1.4)" 'mamba_ssm/*' -d "$1.checkout"
  STARTS_IN=$1.checkout
  IMPORT=$CALL_MAMBA ERROR='TypeError: causal_conv1d_fwd\(\): incompatible function arguments' ROOT=signature_mismatch
}

# mamba_ssm hides why causal_conv1d_cuda does not load; the first call says something else.
fault_silent_none_cut_module() {
  local file
  mamba_and_conv "$1" 1.2.0.post1 1.4.0 7
  file=$(fx_site "$1/bin/python")/causal_conv1d_cuda$(fx_suffix "$1/bin/python")
  head -c 100 "$file" >"$file.cut" && mv "$file.cut" "$file"
  # What it says depends on the release: an attribute of None, or its own words.
  IMPORT=$CALL_MAMBA ERROR="'NoneType' object has no attribute 'causal_conv1d_fwd'|causal_conv1d_cuda is not available"
  LOG=silent_none_causal_conv1d
  ROOT=corrupt_binary FOUND='corrupt_binary silent_none_causal_conv1d'
}

# From 2.2.5 on mamba_ssm takes names from causal_conv1d.cpp_functions, which causal-conv1d has from 1.5.1 on.
fault_silent_none_missing_submodule() {
  mamba_and_conv "$1" 2.3.1 1.4.0 7
  install_with "$1" "$FX_TRITON"
  IMPORT=$CALL_MAMBA ERROR='AssertionError: causal_conv1d_cuda is not available' ROOT=silent_none_causal_conv1d
}

fault_transformers_incompatible() {
  link_good "$(module_file "$1")" "$1"
  install_release "$1" mamba-ssm 1.2.0.post1
  install_transformers_4 "$1"
  install_with "$1" transformers==5.0.0 huggingface_hub==1.3.4 httpx httpcore anyio h11 typer-slim click shellingham
  IMPORT='import mamba_ssm' ERROR="cannot import name 'GreedySearchDecoderOnlyOutput' from 'transformers.generation'"
  ROOT=transformers_incompatible
}

fault_triton_incompatible_missing() {
  link_good "$(module_file "$1")" "$1"
  install_mamba "$1"
  install_transformers_4 "$1"
  IMPORT='import mamba_ssm' ERROR="ModuleNotFoundError: No module named 'triton'" ROOT=triton_incompatible
}

# triton 3 took log1p out of triton.language.math, which mamba_ssm 1.2's decoding kernel uses. The kernel is compiled
# here for a GPU that is not there: that part of triton needs none.
fault_triton_incompatible_log1p() {
  link_good "$(module_file "$1")" "$1"
  install_release "$1" mamba-ssm 1.2.0.post1
  install_transformers_4 "$1"
  install_with "$1" "$FX_TRITON"
  IMPORT=$(cat "$FAULTS/module/compile_kernel.py")
  ERROR="AttributeError\(\"module 'triton.language.math' has no attribute 'log1p'\"\)|has no attribute 'log1p'"
  ROOT=triton_incompatible
}

# pip compiled the module in a folder of its own, with the torch that it had put there: its headers' paths stay in the
# file, since torch's checks print where they stand.
fault_build_isolation_wrong_torch() {
  local overlay=$1.tmp/pip-build-env-2wm1dwk5/overlay/lib/python3.11/site-packages include
  include=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  mkdir -p "$overlay"
  ln -s "$(fx_other_torch)/torch" "$overlay/torch"
  # gcc would write the headers' real paths, behind the link.
  g++ -std=c++20 -O1 -fPIC -w -fno-canonical-system-headers -I"$include" -isystem "$overlay/torch/include" \
    -isystem "$overlay/torch/include/torch/csrc/api/include" -c "$FAULTS/module/binding.cc" -o "$1.isolated.o"
  link_module "$(module_file "$1")" "$1" "$1.isolated.o" "$MODULES/scan-other.o"
  rm -r "$1.tmp" "$1.isolated.o"
  ERROR='undefined symbol: _ZN.*' ROOT=build_isolation_wrong_torch LOG=torch_version_mismatch
  FOUND='build_isolation_wrong_torch torch_version_mismatch'
}

# A package wanted another torch, and pip brought it: torch is there as a requirement (no REQUESTED), newer than the
# module. The files of the shared environment are links, so the metadata is copied before it is marked as pip does.
fault_pip_replaced_torch() {
  local site info
  link_stale "$(module_file "$1")" "$1"
  touch -d '2 days ago' "$(module_file "$1")"
  site=$(fx_site "$1/bin/python")
  rm "$site/shared-torch.pth"
  "$(fx_torch_env)/bin/python" -c 'import torch; print(torch.__path__[0])' >"$1.torch"
  cp -al "$(dirname "$(cat "$1.torch")")/." "$site/"
  for info in "$site"/torch-*.dist-info; do
    cp -a --no-preserve=links "$info" "$info.copy" && rm -r "$info" && mv "$info.copy" "$info"
    rm -f "$info/REQUESTED" && touch -d '1 hour ago' "$info/RECORD"
  done
  install_release "$1" causal-conv1d 1.4.0
  touch -d '59 minutes ago' "$site"/causal_conv1d-*.dist-info/RECORD
  ERROR='undefined symbol: _ZN.*' ROOT=pip_replaced_torch LOG=torch_version_mismatch FOUND='pip_replaced_torch torch_version_mismatch'
}
