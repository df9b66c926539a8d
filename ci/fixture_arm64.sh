# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# An aarch64 root file system: what a cross compiler links scankit with, and where qemu runs it beside a Python and a torch of
# that processor. Sourced after fixtures.sh. Neither dpkg nor the kernel of this machine learns of another architecture.
FX_ARM64_TORCH=2.6.0 # its wheel is of the CPU alone

# apt as of an aarch64 machine on which nothing is installed: its state, lists and downloads are below STATE. The sources, the
# mirror, the proxy and the keys are this machine's.
fx_arm64_apt() { # STATE COMMAND...
  local state=$1
  shift
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state/cache" -o APT::Sandbox::User= -o Acquire::Languages=none -o APT::Install-Recommends=false "$@"
}

# The libraries that ci/cmake/dependencies.cmake names, a Python, and what a shell script and dpkg want of a system.
fx_arm64_packages() {
  sed -n 's/^# apt: *//p' "$(dirname "${BASH_SOURCE[0]}")/cmake/dependencies.cmake" | sed 's/(.*//' | tr -s ' ' '\n' | grep -e '-dev$'
  echo libc6-dev python3-dev python3-venv base-files base-passwd bash coreutils dash diffutils dpkg findutils grep gzip libc-bin \
    sed tar ca-certificates | tr ' ' '\n'
}

# fx_arm64_unpack ROOT PACKAGE.deb...: without running a script of theirs, with the entries of dpkg's database.
fx_arm64_unpack() {
  local root=$1 package name folder
  shift
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc" "$root/tmp" "$root/proc" "$root/dev"
  for folder in bin sbin lib; do mkdir -p "$root/usr/$folder" && ln -sfn "usr/$folder" "$root/$folder"; done
  for package in "$@"; do
    name=$(dpkg-deb -f "$package" Package)
    [ "$(dpkg-deb -f "$package" Multi-Arch)" != same ] || name+=:arm64
    dpkg-deb --fsys-tarfile "$package" | tar -C "$root" --keep-directory-symlink -xvf - |
      sed 's|^\.||; s|/$||; s|^$|/.|' >"$root/var/lib/dpkg/info/$name.list" || return 1
    { dpkg-deb -f "$package" && printf 'Status: install ok installed\n\n'; } >>"$root/var/lib/dpkg/status"
  done
  echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
  echo 'root:x:0:' >"$root/etc/group"
}

# A link to /lib/... is one into this machine for who is not inside: the linker would miss libm.so.
fx_arm64_relative_links() {
  local link target
  find "$1" -xdev -type l -lname '/*' | while read -r link; do
    target=$1$(readlink "$link")
    [ ! -e "$target" ] || ln -sfnr "$target" "$link"
  done
}

fx_make_arm64_root() {
  local state=$1.apt packages
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { fx_say "an aarch64 root needs apt and dpkg"; return 1; }
  fx_say "making an aarch64 root file system in $1"
  rm -rf "$state" && mkdir -p "$state/lists/partial" "$state/cache/archives/partial" && : >"$state/status" || return 1
  mapfile -t packages < <(fx_arm64_packages)
  logged "$1.log" fx_arm64_apt "$state" update || true # a third party's source may have no aarch64
  live "fixtures: downloading aarch64 packages" no_detail "$1.log" logged "$1.log" \
    fx_arm64_apt "$state" install -y --download-only "${packages[@]}" ||
    { grep -E '^(E|W):' "$1.log" | sed 's/^/  /' >&2; return 1; }
  fx_arm64_unpack "$1" "$state"/cache/archives/*.deb && fx_arm64_relative_links "$1" && rm -rf "$state"
}

# The aarch64 of the release that this machine's sources name; it is read, not changed.
fx_arm64_root() { fx_once "$SCANKIT_CACHE/roots/arm64-$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")" fx_make_arm64_root; }

# fx_arm64_configure SOURCES TREE ROOT: a build of scankit for aarch64 by the cross compiler.
fx_arm64_configure() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSCANKIT_TESTS=OFF -DCMAKE_TOOLCHAIN_FILE="$1/ci/cmake/aarch64.cmake" \
    -DSCANKIT_SYSROOT="$3"
}

# fx_arm64 ROOT COMMAND...: COMMAND inside ROOT, every program of which an emulator runs, children too. The registration of the
# emulator is in a user namespace of its own (Linux 6.7) and ends with the command.
fx_arm64() {
  local emulator
  emulator=$(command -v qemu-aarch64-static) || return 1
  unshare --user --map-root-user --mount -- bash -c '
    set -e
    emulator=$1 root=$2
    shift 2
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    printf "%s" ":scankit-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$emulator:FP" \
      >/proc/sys/fs/binfmt_misc/register
    mount --rbind /proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" "$@"' - "$emulator" "$@"
}

# Whether fx_arm64 works here; else says why not.
fx_arm64_runs() { # ROOT
  command -v qemu-aarch64-static >/dev/null || { echo "no qemu-aarch64-static here (Debian: qemu-user-static)"; return 1; }
  [ "$(fx_arm64 "$1" /usr/bin/uname -m 2>&1)" = aarch64 ] ||
    { echo "this kernel runs no aarch64 program in a user namespace of its own (it needs Linux 6.7 and binfmt_misc)"; return 1; }
}

# Without dependencies: pip would read their markers with the processor of this machine.
fx_make_arm64_torch() { # FOLDER
  local root site python
  root=$(fx_arm64_root) || return 1
  python=$(fx_pip_python) || return 1
  cp -a --reflink=auto "$root" "$1" && fx_arm64 "$1" /usr/bin/python3 -m venv --without-pip /env || return 1
  site=$(echo "$1"/env/lib/python3.*/site-packages)
  live "fixtures: installing torch $FX_ARM64_TORCH for aarch64" no_detail "$1.log" logged "$1.log" \
    fx_pip_of "$python" install --no-compile --target "$site" --only-binary :all: --implementation cp \
    --python-version "$(basename "$(dirname "$site")" | sed 's/python//')" --platform manylinux_2_28_aarch64 \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --no-deps "torch==$FX_ARM64_TORCH" typing_extensions \
    filelock fsspec jinja2 markupsafe mpmath networkx sympy numpy einops ||
    { tail -n 12 "$1.log" | sed 's/^/  /' >&2; return 1; }
}

# The same root with an environment /env that has torch; a test that changes it takes a copy.
fx_arm64_torch() { fx_once "$SCANKIT_CACHE/roots/arm64-torch-$FX_ARM64_TORCH" fx_make_arm64_torch; }
