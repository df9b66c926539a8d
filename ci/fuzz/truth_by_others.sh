#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# truth_by_others.sh READERS PYTHON_WITH_TORCH: truth_by_others.py in an environment that has pyelftools and packaging.
set -euo pipefail
# shellcheck source=ci/fixtures.sh
. "$(dirname "$0")/../fixtures.sh"
readers=$1 python=${SCANKIT_TEST_PYTHON:-$2}
fx_make_readers() { fx_venv "$1" && fx_install "$1" pyelftools==0.32 packaging==26.3; }
others=$(fx_once "$SCANKIT_CACHE/envs/readers-1" fx_make_readers) || { echo "SKIP: pyelftools and packaging could not be installed" && exit 77; }
"$others/bin/python" -B "$(dirname "$0")/truth_by_others.py" "$readers" "$python" "$SCANKIT_CACHE"
