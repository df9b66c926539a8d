# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154  # $here and $scankit are the test's, whose head this is
# Sourced by the tests of the lock, with $here and $scankit set: a package index on the loopback, uv and pip, a scratch project. $tools
# is the venv of uv and what reads exports, $url the index, $server its process; a fault of a test is told by check().
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/../../builder/tests/checks.sh"
base=$(fx_python) || exit 77
fx_make_installers() { "$base" -m venv "$1" && "$1/bin/python" -m pip --disable-pip-version-check -q install uv==0.13.9 py-rattler==0.28.0; }
tools=$(fx_once "$SCANKIT_CACHE/envs/installers-1" fx_make_installers) || { echo "SKIPPED: no uv" && exit 77; }
export XDG_CACHE_HOME=$work/cache HOME=$work/home PIP_CACHE_DIR=$work/cache/pip UV_CACHE_DIR=$work/cache/uv PIP_DISABLE_PIP_VERSION_CHECK=1
export PATH=/usr/bin:/bin
unset PIP_FIND_LINKS UV_FIND_LINKS PIP_EXTRA_INDEX_URL UV_INDEX UV_EXTRA_INDEX_URL VIRTUAL_ENV CONDA_PREFIX PYTHONPATH
mkdir -p "$HOME" "$work/project"
echo 'int answer(void) { return 42; }' | cc -x c -shared -fPIC -o "$work/answer.so" -
"$base" -B "$here/lock_wheels.py" "$work" "$work/answer.so"

# shellcheck disable=SC2120  # the tests pass it
serve() { # serve [--html]: the index, from now on at $url
  : >"$work/port"
  "$base" -B "$here/../../builder/tests/fetch_server.py" "$work/served" "$@" >"$work/port" &
  server=$!
  trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
  for _ in $(seq 100); do [ -s "$work/port" ] && break || sleep 0.1; done
  url=http://127.0.0.1:$(cat "$work/port")
  export PIP_INDEX_URL=$url/simple UV_DEFAULT_INDEX=$url/simple
}
serve
cd "$work/project" || exit
uv() { "$tools/bin/uv" -q --no-progress "$@"; }

# small_env FOLDER: alpha of the index, beta of nobody's index. Sets $python and $site.
small_env() {
  python=$1/bin/python
  "$tools/bin/python" -m venv --without-pip "$1"
  uv pip install --python "$python" alpha==1.0
  uv pip install --python "$python" --no-index --no-deps "$work"/own/beta-*.whl
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
}
lock() { PATH=$tools/bin:$PATH status_is "${status:-0}" "$scankit" env lock --python "$python" "$@"; }
drift() { # drift STATUS [OPTION...]: of $python, or what the options name
  local expected=$1
  shift
  [ $# -gt 0 ] || set -- --python "$python"
  status_is "$expected" "$scankit" env check --lock scankit.lock "$@"
}
part() { # part EXPRESSION: of lock
  "$base" -c 'import json, sys; print(eval(sys.argv[1], {"lock": json.load(open("scankit.lock"))}))' "$1"
}
by_pip() { "$tools/bin/python" -m pip --python "$P" install -q --no-deps --require-hashes -r requirements.txt; }
by_uv() { uv pip install --python "$P" --no-deps --require-hashes -r requirements.txt; }
by_pylock() { uv pip sync --preview --python "$P" pylock.toml; }
