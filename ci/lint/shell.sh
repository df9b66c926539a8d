#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script parses; shellcheck's warnings and errors are errors where it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t scripts < <(git ls-files -co --exclude-standard -- '*.sh' .ci/run)
for script in "${scripts[@]}"; do bash -n "$script"; done
command -v shellcheck >/dev/null || { echo "SKIP: no shellcheck here; all scripts parse"; exit 77; }
shellcheck -x --severity=warning "${scripts[@]}"
echo "shell: ${#scripts[@]} scripts clean"
