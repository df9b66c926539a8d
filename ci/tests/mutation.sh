#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mutation.sh WORK [OPTION...]: mutation.py with a Python that has libclang. 77: it cannot be installed here.
set -euo pipefail
work=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
make_env() { fx_venv "$1" && fx_install "$1" libclang==18.1.1; }
env=$(fx_once "$SCANKIT_CACHE/envs/libclang-1" make_env) || { echo "SKIP: libclang cannot be installed here" && exit 77; }
exec "$env/bin/python" -B "$here/mutation.py" "$work" "$@"
