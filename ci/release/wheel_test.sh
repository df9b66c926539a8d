#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel_test.sh WORK [WHEEL]: the wheel, made by pip unless one is given, in an environment of every CPython from 3.8 on that
# is here, put there by pip and by uv without a network, and run by uvx and pipx.
set -euo pipefail
# shellcheck source=ci/release/testing.sh
. "$(dirname "$0")/testing.sh"
work=$1 failures=0
rm -rf "${work:?}/env" "${work:?}/home" "${work:?}/target"
mkdir -p "$work"
work=$(cd "$work" && pwd)
tools=$(fx_wheel_tools) || skip "pip could not fetch auditwheel, abi3audit and uv"
wheel=${2:-}
if [ -z "$wheel" ]; then
  bash "$here/wheel.sh" --build "$work/build" --out "$work/dist"
  wheel=$(echo "$work"/dist/scankit-*.whl)
fi
uv=$tools/bin/uv
export PIP_DISABLE_PIP_VERSION_CHECK=1 UV_CACHE_DIR=$work/uv-cache UV_OFFLINE=1 UV_NO_PROGRESS=1
trap 'rm -rf "$work/env" "$work/home" "$work/target" "$work/uv-cache"' EXIT

check() { # WHAT COMMAND...
  local what=$1 code=0
  shift
  "$@" >"$work/output.txt" 2>&1 </dev/null || code=$?
  [ "$code" -eq 0 ] && return 0
  echo "FAILED: $what (status $code: $*)"
  tail -n 5 "$work/output.txt"
  failures=$((failures + 1))
}
says() { "${@:2}" 2>&1 | grep -q -- "$1"; }
# ends STATUS TEXT COMMAND...: with that status, having said TEXT.
ends() {
  local status=0
  "${@:3}" >"$work/said.txt" 2>&1 || status=$?
  cat "$work/said.txt"
  [ "$status" -eq "$1" ] && grep -q -- "$2" "$work/said.txt"
}
# nothing_left DIRECTORY...: they are there, and have no file of ours.
nothing_left() {
  for directory; do test -d "$directory" || return 1; done
  ! find "$@" -path '*scankit*' -not -type d | grep .
}

# The doctor must find the environment's interpreter by itself; without torch it has nothing to check there, status 4.
works() { # WHAT ENV
  local scankit=$2/bin/scankit
  check "$1: it says its version" says "scankit $version" "$scankit" --version
  check "$1: the doctor finds the environment" ends 4 "Python:.*$2/bin/python" env VIRTUAL_ENV="$2" "$scankit" doctor
  check "$1: shells and man find its files" test -s "$2/share/bash-completion/completions/scankit" -a \
    -s "$2/share/zsh/site-functions/_scankit" -a -s "$2/share/fish/vendor_completions.d/scankit.fish" -a -s "$2/share/man/man1/scankit.1"
  check "$1: and says that it has no torch" ends 4 "nothing to check: PyTorch is not installed" \
    env -u PYTHONPATH "$scankit" doctor --no-import --python "$2/bin/python"
  check "$1: pip's and uv's records hold it" says "^scankit $version" "$2/bin/python" -c \
    'from importlib.metadata import version; print("scankit", version("scankit"))'
}

version=$(sed -n 's/^project(scankit VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")
check "the version stands in one place" test "$(basename "$wheel")" = "scankit-$version-py3-none-manylinux_2_17_x86_64${2:+.musllinux_1_1_x86_64}.whl"
count=0
while read -r python; do
  name=$("$python" -c 'import sys; print("CPython %d.%d" % sys.version_info[:2])')
  rm -rf "$work/env"
  "$python" -m venv "$work/env"
  check "$name, pip: install" "$work/env/bin/python" -m pip install -q --no-index "$wheel"
  works "$name, pip" "$work/env"
  check "$name, pip: uninstall" "$work/env/bin/python" -m pip uninstall -q -y scankit
  check "$name, pip: nothing is left" nothing_left "$work/env"
  rm -rf "$work/env"
  "$uv" venv -q -p "$python" "$work/env"
  check "$name, uv: install" "$uv" pip install -q --no-index --python "$work/env/bin/python" "$wheel"
  works "$name, uv" "$work/env"
  check "$name, uv tool run" says "scankit $version" "$uv" tool run -q --no-index -p "$python" --from "$wheel" scankit --version
  count=$((count + 1))
done < <(fx_every_python)

python=$(fx_python)
if "$python" -m pip --version >/dev/null 2>&1; then # Debian's Python has none unless python3-pip is installed
  check "pip --user: install" env HOME="$work/home" "$python" -m pip install -q --user --no-index --break-system-packages "$wheel"
  check "pip --user: it runs" says "scankit $version" "$work/home/.local/bin/scankit" --version
  check "pip --user: what fix installs lies beside it" test -s "$work/home/.local/share/scankit/modules/selective_scan_cuda.abi3.so"
fi
check "pip --target: install" "$(fx_pip_python)" -m pip install -q --no-index --target "$work/target" "$wheel"
check "pip --target: it runs" says "scankit $version" "$work/target/bin/scankit" --version
check "uv tool install" env HOME="$work/home/uv" "$uv" tool install -q --no-index "$wheel"
check "uv tool install: it runs through the link" says "scankit $version" "$work/home/uv/.local/bin/scankit" --version
check "uvx" says "scankit $version" "$tools/bin/uvx" -q --no-index --from "$wheel" scankit --version

# pipx fetches a pip for its environments, so the index is not turned off; the wheel is the file. What the caller's PIPX_
# variables name is the caller's.
for variable in "${!PIPX_@}"; do unset "$variable"; done
own=$work/home/pipx/.local
pipx() {
  env HOME="$work/home/pipx" PIPX_HOME="$own/pipx" PIPX_BIN_DIR="$own/bin" PIPX_MAN_DIR="$own/share/man" PIPX_DEFAULT_PYTHON="$python" \
    "$tools/bin/pipx" "$@"
}
check "pipx run" says "scankit $version" pipx run --spec "$wheel" scankit --version
check "pipx run: the doctor" ends 4 'nothing to check: PyTorch is not installed' pipx run --spec "$wheel" scankit doctor --no-import --python "$python"
check "pipx install" pipx install "$wheel"
check "pipx install: it runs through the link" says "scankit $version" "$own/bin/scankit" --version
check "pipx install: what fix installs lies there" test -n "$(find "$own/pipx/venvs" -path '*share/scankit/modules/selective_scan_cuda.abi3.so')"
check "pipx uninstall" pipx uninstall scankit
check "pipx uninstall: nothing is left" nothing_left "$own/bin" "$own/share/man"
check "pipx uninstall: its environment is gone" test -d "$own/pipx/venvs" -a ! -e "$own/pipx/venvs/scankit"
[ "$count" -ge 1 ] || { echo "FAILED: no Python to install into" && exit 1; }
[ "$failures" -eq 0 ] || { echo "$failures failed" && exit 1; }
printf '%s, %s bytes: %d Pythons, by pip and by uv; pipx and uvx\n' "$(basename "$wheel")" "$(stat -c %s "$wheel")" "$count"
