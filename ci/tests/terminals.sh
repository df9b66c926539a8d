#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# terminals.sh WHAT SCANKIT MODULES WORK: terminals.py in scratch environments with a real torch and built modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
what=$1 scankit=$2 modules=$3 work=$4/$1
reader=$(fx_terminal_reader) || { echo "SKIPPED: pyte could not be installed" && exit 77; }
mkdir -p "$work"
env=$(fx_scratch_env "$work/env") hangs=$(fx_scratch_env "$work/hangs")
cp "$modules"/selective_scan_cuda.abi3.so "$(fx_site "$env/bin/python")/"
printf 'import time\nwhile True:\n    time.sleep(60)\n' >"$(fx_site "$hangs/bin/python")/selective_scan_cuda.py"
broken=$(fx_scratch_env "$work/broken")
echo "not a shared library" >"$(fx_site "$broken/bin/python")/selective_scan_cuda$(fx_suffix "$broken/bin/python")"
exec "$reader/bin/python" -B "$here/terminals.py" "$what" "$scankit" "$env" "$hangs" "$broken" "$work"
