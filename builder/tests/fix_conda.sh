#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repairs by conda, in a prefix of real conda packages (doctor/tests/e2e/conda.sh):  fix_conda.sh SCANKIT [CASE...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=doctor/tests/e2e/conda.sh
. "$here/../../doctor/tests/e2e/conda.sh"
scankit=$(realpath "$1")
shift
# shellcheck source=builder/tests/fix.sh
. "$here/fix.sh"
command -v patchelf >/dev/null || { echo "SKIPPED: no patchelf" && exit 77; }
fx_installers >/dev/null || { echo "SKIPPED: no py-rattler" && exit 77; }
unset CONDA_PREFIX CONDA_EXE MAMBA_EXE
env=$work/prefix
channel=$work/channel
export RATTLER_CACHE_DIR=$work/packages
python=$(fx_python)
site=lib/python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages
cd "$work"

# python_package NAME VERSION MODULE DEPENDENCY...: MODULE.py or MODULE/__init__.py is the standard input
python_package() {
  local info=package/$site/${1//-/_}-$2.dist-info name=$1 version=$2 module=$3
  rm -rf package && mkdir -p "$info" "package/$site/$(dirname "$module")"
  cat >"package/$site/$module"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$1" "$2" >"$info/METADATA"
  echo conda >"$info/INSTALLER"
  (cd "package/$site" && find . -type f -printf '%P,,\n') >record && mv record "$info/RECORD"
  shift 3
  conda_channel add "$channel" "$name" "$version" package "$@"
}

# torch is a conda package too, as far as conda goes: its files are those of the shared environment.
make_prefix() {
  conda_channel_of_demo "$channel" "$python"
  rm -rf package && mkdir -p "package/$site"
  fx_site "$(fx_torch_env)/bin/python" >"package/$site/torch.pth"
  conda_channel add "$channel" pytorch 2.11.0 package python
  python_package triton 2.1.0 triton/__init__.py pytorch </dev/null
  echo 'from triton import what_came_with_three' | python_package mamba-ssm 2.3.1 mamba_ssm/__init__.py triton
  conda_channel install "$channel" "$env" demo-ext pytorch triton mamba-ssm
  conda_program bin/conda "$channel"
}
PATH=$work/bin:$PATH
fix() { "$scankit" fix --python "$env/bin/python" --arch compute_75 "$@"; }
everything() { (cd "$env" && find . \( -name __pycache__ -o -path ./.scankit \) -prune -o -type f -exec sha256sum {} + | sort); }
version_of() { (cd "$env/conda-meta" && ls) | sed -nE "s/^$1-([0-9][^-]*)-.*\.json$/\1/p"; }

case_reinstall() {
  local file=$env/$site/demo_ext/core.abi3.so cached
  head -c 3000 "$file" >cut.so && rm "$file" && cp cut.so "$file" # conda's hard link leads to its cache
  cached=$(find "$work/packages" -name core.abi3.so | head -1)
  sha256sum <"$cached" >cached
  everything >before
  check "the plan shows conda's command" status_is 0 fix --module demo_ext.core --dry-run
  check "for that package alone" says "$work/bin/conda install --yes --prefix $env --force-reinstall --no-deps demo-ext=1.0"
  check "fix" status_is 0 fix --module demo_ext.core --yes
  check "it imports" "$env/bin/python" -c 'import demo_ext.core as c; assert c.answer == 42'
  check "conda's cache has its bytes" sh -c "sha256sum <'$cached' | cmp - cached"
  check "restore" status_is 0 restore
  everything >after
  check "brings the broken one back, and conda's records" diff before after
  check "and nothing of that reached the cache" sh -c "sha256sum <'$cached' | cmp - cached"
}

# The triton that torch pins, of a channel whose build of it wants another torch: conda is told to hold what is there.
case_held() {
  echo 'what_came_with_three = 1' | python_package triton 3.6.0 triton/__init__.py 'pytorch 2.12.*'
  rm -rf package && mkdir -p package
  conda_channel add "$channel" pytorch 2.12.0 package python
  everything >before
  check "the plan holds torch" status_is 0 fix --module mamba_ssm --dry-run
  check "as conda does" says "--freeze-installed triton=3.6.0"
  check "a triton that wants another torch is not installed" status_is 5 fix --module mamba_ssm --yes
  check "by conda's own answer" grep -q 'pytorch' err
  everything >after
  check "and nothing changes" diff before after
  check "without that option it would go in" conda_channel install "$channel" "$env.other" triton=3.6.0
  check "with the other torch" test -e "$env.other/conda-meta/pytorch-2.12.0-0.json"
}

case_upgrade() {
  echo 'what_came_with_three = 1' | python_package triton 3.6.0 triton/__init__.py pytorch 'libdemo >=2'
  mkdir -p package/lib && echo >package/lib/other
  conda_channel add "$channel" libdemo 2.2 package
  everything >before
  check "fix" status_is 0 fix --module mamba_ssm --yes
  check "mamba_ssm imports" "$env/bin/python" -c 'import mamba_ssm'
  check "by conda's record" test "$(version_of triton)" = 3.6.0
  check "torch is as it was" test "$(version_of pytorch)" = 2.11.0
  check "so is what there is a newer one of" test "$(version_of libdemo)" = 2.1
  check "restore" status_is 0 restore
  everything >after
  check "takes the records back too" diff before after
  check "conda itself goes on from there" conda_channel install "$channel" "$env" --freeze-installed triton=3.6.0
  check "to the same" "$env/bin/python" -c 'import mamba_ssm'
  conda_channel install "$channel" "$env" --freeze-installed triton=2.1.0
}

# Killed after conda has changed the prefix.
case_killed() {
  local fixer
  everything >before
  sed -i "s/^exec //; \$a touch '$work/installed'; sleep 60" bin/conda
  "$scankit" fix --python "$env/bin/python" --arch compute_75 --module mamba_ssm --yes >/dev/null 2>&1 </dev/null &
  fixer=$!
  until [ -e installed ] || ! kill -0 "$fixer" 2>/dev/null; do :; done
  check "conda had done its work" test "$(version_of triton)" = 3.6.0
  kill -9 "$fixer"
  wait "$fixer" 2>/dev/null || true
  check "killed: restore" sh -c "for i in 1 2 3 4 5; do '$scankit' restore --python '$env/bin/python' && exit; sleep 1; done; exit 1"
  everything >after
  check "killed: the old prefix" diff before after
}

make_prefix
[ $# -gt 0 ] || set -- reinstall held upgrade killed
run_cases "$@"
