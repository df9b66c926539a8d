#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# link-torch-env.sh LINK: makes the shared test environment and lets LINK point at it, so that a build tree knows its
# path (LINK/bin/python) before it exists.
set -euo pipefail
# shellcheck source=ci/fixtures.sh
. "$(cd "$(dirname "$0")" && pwd)/fixtures.sh"
env=$(fx_torch_env)
mkdir -p "$(dirname "$1")"
ln -sfn "$env" "$1"
"$1/bin/python" -c 'import torch; print("torch", torch.__version__, "in", torch.__file__)'
