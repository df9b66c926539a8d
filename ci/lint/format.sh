#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-format over every source that git would ship. `format.sh --fix` rewrites them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "format: no clang-format here" >&2; exit 1; }
# Another version lays out otherwise: Debian 13 has 19.
case $("$tool" --version) in
  *' version 14.'*) ;;
  *) echo "SKIPPED: the sources are laid out by clang-format 14, and this is $("$tool" --version)"; exit 77 ;;
esac
git ls-files -co --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh' | xargs -d '\n' "$tool" "${mode[@]}"
echo "format: clean"
