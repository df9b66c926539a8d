# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shell functions that make what the tests and the quickstart need: Pythons, environments with a real torch, headers of
# another torch, a root file system of another release. Sourced. Everything downloaded or unpacked is kept in
# $SCANKIT_CACHE between runs; a second run finds it there. Each function prints the path of what it made.
# What a user's pip.conf asks of every pip: a venv refuses the first, and the tests make environments of their own.
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_QUIET=0
SCANKIT_CACHE=${SCANKIT_CACHE:-$HOME/.cache/scankit-dev}
# shellcheck source=ci/progress.sh
. "$(dirname "${BASH_SOURCE[0]}")/progress.sh"
# shellcheck source=ci/fixture_tools.sh
. "$(dirname "${BASH_SOURCE[0]}")/fixture_tools.sh"

FX_TORCH=2.11.0
# The release that broken modules are compiled against: its C++ API differs from FX_TORCH's (c10::ValueError's constructor
# left the headers, at::detail::tensor_cpu changed its parameters), and its wheel is the smallest.
FX_OTHER_TORCH=2.13.0
FX_MAMBA=2.3.1
# A real extension of another torch (its METADATA pins 2.6.0), the smallest that needs many of torch's names.
FX_EXTENSION=torchvision==0.21.0

fx_say() { printf '%s\n' "fixtures: $*" >&2; }
fx_die() {
  fx_say "$*"
  exit 1
}

# fx_once PATH FUNCTION: runs FUNCTION PATH unless PATH.ready exists; one process at a time, others wait.
fx_once() {
  local path=$1 make=$2
  mkdir -p "$(dirname "$path")"
  (
    flock 9
    if [ ! -e "$path.ready" ]; then
      rm -rf "$path"
      "$make" "$path" >&2 || fx_die "$make could not make $path"
      touch "$path.ready"
    fi
  ) 9>"$path.lock" || return 1
  printf '%s\n' "$path"
}

# The interpreter for the environments: real (not a shim), with venv and headers, and one that FX_TORCH has wheels for.
fx_python() {
  local candidate real
  for candidate in ${SCANKIT_PYTHON:-} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python \
    python3.11 python3.12 python3.13 python3.10 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-3].*/bin/python python3; do
    real=$("$candidate" - 2>/dev/null <<'PY'
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
if (3, 10) <= sys.version_info[:2] <= (3, 14) and os.path.exists(header):
    print(os.path.realpath(sys.executable))
PY
    ) || continue
    [ -n "$real" ] && printf '%s\n' "$real" && return 0
  done
  fx_die "no CPython 3.10 to 3.14 with venv and headers here; install python3-venv and python3-dev, or set SCANKIT_PYTHON"
}

# fx_venv FOLDER: a venv of fx_python with its own pip (ensurepip unpacks one: a second or ten).
fx_venv() {
  local python
  python=$(fx_python) || return 1
  live "fixtures: making a venv" no_detail - "$python" -m venv "$1"
}

# The Python whose pip downloads: of a venv of our own, since Debian's Python comes without pip (python3-pip is a package of
# its own). Index, proxy and certificates are still the user's: pip in a venv reads the same configuration.
fx_pip_python() {
  local python key venv
  python=$(fx_python) || return 1
  key=$({ "$python" -VV; echo "$python"; } | sha256sum | cut -c1-10)
  venv=$(fx_once "$SCANKIT_CACHE/envs/pip-$key" fx_venv) || return 1
  printf '%s\n' "$venv/bin/python"
}

# fx_pip_of PYTHON ARGUMENT...: pip without questions. A user's `[install] user = true` cannot work in a venv, and
# `quiet` would hide what the progress is read from.
fx_pip_of() {
  local python=$1
  shift
  env PIP_USER=0 PIP_QUIET=0 PIP_REQUIRE_VIRTUALENV=0 "$python" -m pip --disable-pip-version-check --no-input "$@"
}

# fx_fetch INTO ARGUMENT...: `pip download ARGUMENT...` into INTO, with size and percentage; pip's output is shown only if it fails.
fx_fetch() {
  local into=$1 work=$1/.pip python cache=()
  shift
  python=$(fx_pip_python) || return 1
  # A first download of gigabytes would be written to pip's cache as well, and we keep the wheels ourselves.
  [ -d "${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pip}" ] || cache=(--no-cache-dir)
  rm -rf "$work" && mkdir -p "$work"
  local -x TMPDIR=$work
  live "fixtures: downloading" pip_detail "$work" logged "$work/log" \
    fx_pip_of "$python" download --progress-bar off "${cache[@]}" -d "$into" "$@" && rm -rf "$work" && return 0
  tail -n 12 "$work/log" | sed 's/^/  /' >&2
  return 1
}

# fx_install VENV REQUIREMENT...: by the venv's own pip.
fx_install() {
  local python=$1/bin/python log=$1.install.log
  shift
  rm -f "$log"
  live "fixtures: installing $1" last_line "$log" logged "$log" fx_pip_of "$python" install --progress-bar off "$@" && rm -f "$log" && return 0
  tail -n 12 "$log" | sed 's/^/  /' >&2
  return 1
}

# Another installed CPython minor than $1's, for leftovers and tags; prints nothing where there is none.
fx_other_python() {
  local candidate have want
  want=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-4].*/bin/python python3.10 python3.12 python3.13; do
    have=$("$candidate" -c 'import sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [ "$have" != "$want" ] && printf '%s\n' "$candidate" && return 0
  done
  return 0
}

# TOOLCHAIN facts: `import torch` links these eagerly. Where the loader finds a CUDA 13 toolkit's copies, a few wheels do.
fx_toolkit_serves_torch() {
  local cache soname
  cache=$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null)
  for soname in libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcurand.so.10 \
    libcusparse.so.12 libcusolver.so.12 libcupti.so.13 libnccl.so.2 libnvJitLink.so.13; do
    case $cache in *"$soname "*) ;; *) return 1 ;; esac
  done
}

# fx_download DESTINATION REQUIREMENT...: by pip, into a folder; what lies there already is not asked for again.
fx_download() {
  local into=$1 python attempt
  shift
  python=$(fx_pip_python) || return 1
  mkdir -p "$into"
  # pip reads every wheel for that: half a gigabyte of torch is seconds on a busy disk.
  live "fixtures: looking for $1 among the downloads" no_detail - logged /dev/null \
    fx_pip_of "$python" -q download --no-index --find-links "$into" --no-deps -d "$into" "$@" && return 0
  fx_say "downloading $*"
  for attempt in 1 2 3; do
    fx_fetch "$into" --no-deps "$@" && return 0
    fx_say "download failed (attempt $attempt of 3)"
    sleep 2
  done
  fx_say "pip uses the index, proxy and certificates that you configured: \`$python -m pip config list\` shows them"
  return 1
}

fx_torch_requirements() {
  echo "torch==$FX_TORCH" typing_extensions filelock fsspec jinja2 markupsafe mpmath networkx sympy numpy einops pytest iniconfig \
    packaging pluggy pygments setuptools wheel nvidia-cuda-nvrtc==13.0.88
  if fx_toolkit_serves_torch; then
    echo nvidia-cufile nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5
  fi
}

# The wheels of FX_TORCH for fx_python, in one folder for pip's --find-links.
fx_wheels() {
  local wheels=$SCANKIT_CACHE/wheels
  mkdir -p "$wheels"
  (
    flock 9
    # shellcheck disable=SC2046
    fx_download "$wheels" $(fx_torch_requirements) || exit 1
    fx_toolkit_serves_torch || [ -e "$wheels/.full" ] || {
      fx_say "no CUDA 13 toolkit in the loader's cache: downloading all of torch's wheels (2.2 GB)"
      fx_fetch "$wheels" --find-links "$wheels" "torch==$FX_TORCH" && touch "$wheels/.full"
    }
  ) 9>"$wheels/.lock" >&2 || fx_die "the wheels of torch $FX_TORCH could not be downloaded"
  printf '%s\n' "$wheels"
}

# fx_install_torch VENV: from the wheels, without the network.
fx_install_torch() {
  local wheels log=$1.install.log options=(install --no-index --no-warn-script-location --no-compile)
  wheels=$(fx_wheels) || return 1
  ! fx_toolkit_serves_torch || options+=(--no-deps)
  rm -f "$log"
  # shellcheck disable=SC2046
  live "fixtures: installing torch $FX_TORCH" size_detail "$1" logged "$log" \
    fx_pip_of "$1/bin/python" "${options[@]}" --find-links "$wheels" $(fx_torch_requirements) && rm -f "$log" && return 0
  tail -n 12 "$log" | sed 's/^/  /' >&2
  return 1
}

fx_make_torch_env() {
  fx_say "making an environment with torch $FX_TORCH in $1"
  fx_venv "$1" && fx_install_torch "$1" && "$1/bin/python" -c 'import torch, numpy, einops'
}

# A venv with FX_TORCH, shared by the tests. They read it; what they change is a scratch environment of their own.
fx_torch_env() {
  local python key
  python=$(fx_python) || return 1
  key=$({ fx_torch_requirements; "$python" -VV; echo "$python"; } | sha256sum | cut -c1-10)
  fx_once "$SCANKIT_CACHE/envs/torch-$FX_TORCH-$key" fx_make_torch_env
}

fx_make_torch_headers() {
  local scratch=$1.download
  mkdir -p "$scratch" "$1"
  fx_download "$scratch" "torch==${1##*/torch-}" || return 1
  live "fixtures: unpacking headers" no_detail - unzip -q "$scratch"/torch-*.whl 'torch/include/*' 'torch/version.py' -d "$1" && rm -rf "$scratch"
}

# The include folder's parent of that release: headers alone, the wheel itself is not kept.
fx_torch_headers() { fx_once "$SCANKIT_CACHE/headers/torch-$1" fx_make_torch_headers; }
fx_other_torch() { fx_torch_headers "$FX_OTHER_TORCH"; }

# The same release's headers out of its wheel for macOS, a fifth of the size. They declare Metal's operators besides and give
# objects with the same undefined symbols; version.py is another, so that only a compiler may read this folder.
fx_make_light_headers() {
  local scratch=$1.download python
  python=$(fx_pip_python) || return 1
  mkdir -p "$scratch" "$1"
  fx_fetch "$scratch" --no-deps --only-binary :all: --platform macosx_14_0_arm64 --platform macosx_11_0_arm64 \
    --python-version "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "torch==${1##*/light-torch-}" || return 1
  live "fixtures: unpacking headers" no_detail - unzip -q "$scratch"/torch-*.whl 'torch/include/*' -d "$1" && rm -rf "$scratch"
}

# Headers of FX_OTHER_TORCH for a compiler: those that are here, else the light ones, else (an index without them) the full.
fx_headers_of_other_torch() {
  if [ -e "$SCANKIT_CACHE/headers/torch-$FX_OTHER_TORCH.ready" ]; then
    fx_other_torch
  else
    fx_once "$SCANKIT_CACHE/headers/light-torch-$FX_OTHER_TORCH" fx_make_light_headers || fx_other_torch
  fi
}

fx_make_far_torch() { # FOLDER, named wheels-RELEASE
  mkdir -p "$1"
  fx_fetch "$1" --only-binary :all: "torch==${1##*-}" 'numpy<2'
}

# The wheels of another release of torch, and of all that it depends on: gigabytes.
fx_far_torch() { fx_once "$SCANKIT_CACHE/wheels-$1" fx_make_far_torch; }

fx_make_mamba_wheel() {
  local python
  python=$(fx_torch_env)/bin/python || return 1
  mkdir -p "$1"
  # SKIP is the switch that users set; FORCE keeps setup.py from asking the project's releases for a built wheel.
  MAMBA_SKIP_CUDA_BUILD=TRUE MAMBA_FORCE_BUILD=TRUE fx_pip_of "$python" -q wheel --no-deps --no-binary mamba-ssm \
    --no-build-isolation -w "$1" "mamba-ssm==$FX_MAMBA"
}

# A wheel of the real mamba-ssm without its compiled module, built from the index's source archive.
fx_mamba_wheel() {
  local folder
  folder=$(fx_once "$SCANKIT_CACHE/mamba-ssm-$FX_MAMBA" fx_make_mamba_wheel) || return 1
  ls "$folder"/*.whl
}

fx_make_extension_wheel() {
  mkdir -p "$1"
  fx_download "$1" "$FX_EXTENSION"
}

# The wheel of FX_EXTENSION for the environments' Python.
fx_extension_wheel() {
  local folder
  folder=$(fx_once "$SCANKIT_CACHE/wheel-$FX_EXTENSION" fx_make_extension_wheel) || return 1
  ls "$folder"/*.whl
}

fx_make_python_wheel() {
  local python
  python=$(fx_torch_env)/bin/python || return 1
  mkdir -p "$1"
  MAMBA_SKIP_CUDA_BUILD=TRUE MAMBA_FORCE_BUILD=TRUE CAUSAL_CONV1D_SKIP_CUDA_BUILD=TRUE CAUSAL_CONV1D_FORCE_BUILD=TRUE \
    fx_pip_of "$python" -q wheel --no-deps --no-binary :all: --no-build-isolation -w "$1" \
    "$(basename "$1")"
}

# fx_python_wheel NAME VERSION: a wheel of mamba-ssm or causal-conv1d without its compiled module.
fx_python_wheel() {
  local folder
  folder=$(fx_once "$SCANKIT_CACHE/python-wheels/$1==$2" fx_make_python_wheel) || return 1
  ls "$folder"/*.whl
}

# fx_sdist NAME VERSION: the source archive of the index, of mamba-ssm, causal-conv1d or another that needs torch to name itself.
fx_sdist() {
  local file=$SCANKIT_CACHE/sdists/${1//-/_}-$2.tar.gz python
  python=$(fx_torch_env)/bin/python || return 1
  [ -e "$file" ] || MAMBA_SKIP_CUDA_BUILD=TRUE CAUSAL_CONV1D_SKIP_CUDA_BUILD=TRUE "$python" -m pip --disable-pip-version-check -q \
    download --no-deps --no-binary :all: --no-build-isolation -d "$SCANKIT_CACHE/sdists" "$1==$2" >&2 || fx_die "no sources of $1 $2"
  printf '%s\n' "$file"
}

# fx_packages REQUIREMENT...: wheels of the index, in one folder for pip's --find-links.
fx_packages() {
  local folder=$SCANKIT_CACHE/packages
  mkdir -p "$folder"
  (
    flock 9
    fx_download "$folder" "$@" || exit 1
  ) 9>"$folder/.lock" >&2 || fx_die "could not download $*"
  printf '%s\n' "$folder"
}

# NVRTC of CUDA 12, whose cubins older drivers read: prints the path of the library of its wheel.
fx_make_nvrtc_12() { mkdir -p "$1" && fx_download "$1" nvidia-cuda-nvrtc-cu12==12.9.86 && unzip -q "$1"/*.whl -d "$1" && rm "$1"/*.whl; }
fx_nvrtc_12() {
  local folder
  folder=$(fx_once "$SCANKIT_CACHE/nvrtc-12.9.86" fx_make_nvrtc_12) || return 1
  printf '%s\n' "$folder/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
}

fx_make_foreign_root() {
  command -v debootstrap >/dev/null || return 1
  fx_say "making a root file system of another release (bullseye, glibc 2.31)"
  debootstrap --variant=minbase bullseye "$1" >"$1.log" 2>&1 || return 1
  # A service outside {files, dns} makes a static glibc program load libraries of this root: it must never ask.
  sed -i -E "s/^(passwd|group|hosts|shadow):.*/\1: compat ldap/" "$1/etc/nsswitch.conf"
  rm -rf "$1/var/cache/apt" "$1/var/lib/apt/lists" "$1/usr/share/doc" "$1/usr/share/locale"
}

# A root file system of another release of the distribution; needs root.
fx_foreign_root() { fx_once "$SCANKIT_CACHE/roots/bullseye" fx_make_foreign_root; }

fx_make_bare_root() { # FOLDER, named bare-SUITE
  command -v debootstrap >/dev/null || return 1
  local suite=${1##*/bare-}
  fx_say "making a minimal $suite"
  rm -f "$1.log"
  live "debootstrap $suite" last_line "$1.log" logged "$1.log" debootstrap --variant=minbase "$suite" "$1" || { tail -n 3 "$1.log" && return 1; }
}

# A minimal root of that release (bookworm, trixie, sid); needs root.
fx_bare_root() { fx_once "$SCANKIT_CACHE/roots/bare-$1" fx_make_bare_root; }

# One real interpreter (no shim) of each CPython from 3.8 on that is here and can make a venv.
fx_every_python() {
  local candidate minor seen=' '
  for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python /usr/bin/python3.* /usr/local/bin/python3.*; do
    minor=$("$candidate" -c 'import ensurepip, venv, sys; print(sys.version_info >= (3, 8) and "%d.%d" % sys.version_info[:2] or "")' \
      2>/dev/null) || continue
    case "$seen" in *" $minor "*) continue ;; esac
    [ -z "$minor" ] || printf '%s\n' "$candidate"
    seen+="$minor "
  done
}

# fx_scratch_env FOLDER [pth|plain|bare]: a venv of the test's own. pth: the shared torch by a .pth line. plain: torch's
# files hard-linked into its own site-packages, as uv installs them. bare: no torch.
fx_scratch_env() {
  local folder=$1 way=${2:-pth} base site base_site
  base=$(fx_torch_env) || return 1
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  "$base/bin/python" -c 'import os, sys; print(os.path.realpath(sys.executable))' >"$folder.python"
  "$(cat "$folder.python")" -m venv --without-pip "$folder" || return 1
  site=$(fx_site "$folder/bin/python")
  base_site=$(fx_site "$base/bin/python")
  case $way in
    pth) echo "$base_site" >"$site/shared-torch.pth" ;;
    plain) cp -al "$base_site/." "$site/" 2>/dev/null || cp -a "$base_site/." "$site/" ;;
    bare) ;;
  esac
  printf '%s\n' "$folder"
}

fx_site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
# Debian's Python has a sitecustomize of its own, which comes before that of any environment.
fx_has_sitecustomize() { [ -e "$(dirname "$("$1" -c 'import os; print(os.__file__)')")/sitecustomize.py" ]; }
# fx_at_start PYTHON: standard input is Python code that it runs at every start from now on.
fx_at_start() {
  local site
  site=$(fx_site "$1")
  if fx_has_sitecustomize "$1"; then
    cat >"$site/at_start.py" && echo 'import at_start' >"$site/at_start.pth"
  else
    cat >"$site/sitecustomize.py"
  fi
}
fx_suffix() { "$1" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))'; }
