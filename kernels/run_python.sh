#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_python.sh PYTHON MODULES SCRIPT [ARGUMENT...]: a test script under $SCANKIT_TEST_PYTHON, else PYTHON, with the
# folder $SCANKIT_TEST_MODULES, else MODULES, first on its path. 77 (CTest: skipped) where that is no Python with torch.
set -euo pipefail
python=${SCANKIT_TEST_PYTHON:-$1}
export PYTHONPATH=${SCANKIT_TEST_MODULES:-$2} PYTHONDONTWRITEBYTECODE=1
shift 2
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "SKIPPED: $python is not a Python with torch; set SCANKIT_TEST_PYTHON"
  exit 77
fi
exec "$python" "$@"
