#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole story on a bare machine: build scankit, break a real environment as an upgrade of torch does, let the doctor
# name the cause, let fix repair it, prove the repair. Stops with a non-zero status at the first step that is not as said.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: ci/quickstart.sh [--scankit FILE]
  --scankit FILE  use this finished scankit instead of building one
TEXT
}
given=''
while [ $# -gt 0 ]; do
  case $1 in
    --scankit) [ $# -ge 2 ] && given=$(readlink -f -- "$2") && [ -x "$given" ] || { echo "quickstart: --scankit needs the path of an executable scankit" >&2 && exit 2; } && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
# shellcheck source=ci/fixtures.sh
. ci/fixtures.sh
demo=$PWD/build/quickstart
scankit=${given:-$demo/scankit/scankit}

bold='' dim='' red='' green='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi
step() { printf '\n%s== %s%s  %s(%d s so far)%s\n' "$bold" "$*" "$plain" "$dim" "$SECONDS" "$plain"; }
stop() {
  printf '%squickstart: %s%s\n' "$red" "$*" "$plain" >&2
  exit 1
}

# shown STATUS COMMAND...: prints the command as the user would type it, runs it, and holds it to its exit status.
# scankit's progress (stderr) is left out of the transcript unless something goes wrong; what it does now is shown meanwhile.
shown() {
  local want=$1 code=0 word line=''
  shift
  for word; do
    [ "$word" != "$scankit" ] || word=scankit
    case $word in *[!a-zA-Z0-9_./=-]*) line+=" '$word'" ;; *) line+=" $word" ;; esac
  done
  printf '%s$%s%s\n' "$bold" "${line//"$PWD/"/}" "$plain"
  # What goes on in scankit its own progress tells; python has none.
  if [ "$1" = "$scankit" ]; then
    live "  scankit $2" last_line "$demo/errors.txt" captured "$@" || code=$?
  else
    live "  ${1##*/}" no_detail - captured "$@" || code=$?
  fi
  if [ "$1" != "$scankit" ] || [ "$code" -ne "$want" ]; then cat "$demo/errors.txt" >>"$demo/output.txt"; fi
  sed "s|$PWD/||g" "$demo/output.txt"
  [ "$code" -eq "$want" ] || stop "exit status $code, expected $want"
}
captured() { "$@" </dev/null >"$demo/output.txt" 2>"$demo/errors.txt"; }
# says PATTERN: the last output must hold it.
says() { grep -qE -- "$1" "$demo/output.txt" || stop "the output does not say '$1'"; }

step "packages"
if [ -n "$given" ]; then bash ci/install-deps.sh --demo; else bash ci/install-deps.sh --quickstart; fi
mkdir -p "$demo"

# beside LOG COMMAND...: runs it in the background, in a process group of its own, which ends with this script.
beside() {
  set -m
  "${@:2}" >"$1" 2>&1 </dev/null &
  running=$!
  set +m
  trap 'kill -- "-$running" 2>/dev/null || true' EXIT
}
# rest_of TITLE LOG: waits for that; its exit status.
rest_of() {
  local code=0
  live "$1" last_line "$2" wait "$running" || code=$?
  trap - EXIT
  return "$code"
}
# What the later steps need comes over the network while the compilers are busy. What is missing then, its step gets, or says
# why it cannot.
fetch_ahead() { fx_wheels && fx_headers_of_other_torch; }

build() {
  cmake -S . -B "$demo/scankit" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSCANKIT_TESTS=OFF && cmake --build "$demo/scankit" --target scankit
}
if [ -n "$given" ]; then
  step "the scankit that was given"
else
  step "build scankit"
  rm -f "$demo/build.log"
  beside "$demo/fetch.log" fetch_ahead
  live "  compiling" ninja_detail "$demo/build.log" logged "$demo/build.log" build || {
    tail -n 30 "$demo/build.log"
    stop "the build failed; all of its output is in ${demo#"$PWD"/}/build.log"
  }
fi
shown 0 "$scankit" --version

step "a venv with torch $FX_TORCH"
[ -n "$given" ] || rest_of "  downloading torch" "$demo/fetch.log" || true
rm -rf "$demo/venv"
fx_venv "$demo/venv"
python=$demo/venv/bin/python
# pip unpacks with one processor; the other one can compile the module of the next step.
compile_modules() { bash doctor/tests/e2e/build_modules.sh "$demo/modules" other; }
fx_headers_of_other_torch >/dev/null # a download, which shows its own progress
beside "$demo/modules.log" compile_modules
fx_install_torch "$demo/venv"
shown 0 "$python" -c 'import torch; print("torch", torch.__version__)'

step "a selective_scan_cuda that was compiled against torch $FX_OTHER_TORCH"
rest_of "  compiling against torch $FX_OTHER_TORCH" "$demo/modules.log" || {
  tail -n 30 "$demo/modules.log"
  stop "the demo module was not compiled"
}
site=$(fx_site "$python")
# As setuptools links a torch extension: without a RUNPATH, and undefined names are allowed.
g++ -shared -o "$site/selective_scan_cuda$(fx_suffix "$python")" "$demo/modules/binding-other.o" "$demo/modules/scan-other.o" \
  -L"$site/torch/lib" -lc10 -ltorch_cpu -ltorch -ltorch_python
shown 1 "$python" -c 'import torch, selective_scan_cuda'
says 'undefined symbol'

step "what is wrong"
shown 1 "$scankit" doctor --python "$python"
says torch_version_mismatch

step "make it work"
shown 0 "$scankit" fix --python "$python" --yes

step "it works"
shown 0 "$python" -c 'import torch, selective_scan_cuda; print(selective_scan_cuda.__file__)'
says 'selective_scan_cuda'
shown 0 "$scankit" doctor --python "$python"

step "its results are correct"
shown 0 "$scankit" validate --python "$python" --quick

printf '\n%squickstart: everything as it should be, %d s%s\n' "$green" "$SECONDS" "$plain"
printf 'The old module is kept: %s restore --python %s\n' "${scankit#"$PWD"/}" "${python#"$PWD"/}"
