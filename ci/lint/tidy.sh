#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh BUILD [--all|--slice N/M|FILE...]: clang-tidy with the database of the build tree BUILD (configured with
# CMAKE_EXPORT_COMPILE_COMMANDS). It costs seconds a file on two cores, so CI takes a slice that moves on with each commit:
# the files that the last commit touched and every eightieth of the others.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 which=${2:---slice}
[ -e "$build/compile_commands.json" ] || { echo "tidy: no compile_commands.json in $build" >&2; exit 1; }
tool=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "tidy: no clang-tidy here" >&2; exit 1; }
# Another version has other checks: Debian 13 has 19.
case $("$tool" --version) in
  *' version 14.'*) ;;
  *) echo "SKIPPED: the checks are those of clang-tidy 14, and this is $("$tool" --version | grep -o 'version [0-9.]*')"; exit 77 ;;
esac

# With SCANKIT_UNITY the database names units that include the sources; each source is compiled as its unit is.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
jq -r '.[].file | select(contains("/Unity/"))' "$build/compile_commands.json" | xargs -r -d '\n' grep -H '^#include "' \
  >"$database/included" || true
jq --rawfile included "$database/included" '
  ($included | split("\n") | map(capture("^(?<unit>.*\\.cxx):#include \"(?<file>.*)\"$")) | group_by(.unit)
    | map({key: .[0].unit, value: map(.file)}) | from_entries) as $sources
  | map(.file as $unit | if $sources[$unit] == null then . else
      $sources[$unit][] as $file | .file = $file | .command |= (split($unit) | join($file)) end)
  # What clang does not know: passes and parameters of g++ alone.
  | map(.command |= gsub(" (--param=[^ ]+|-fno-(tree|ipa)-[a-z-]+|-fno-(dse|code-hoisting|schedule-insns2|gcse|ivopts))"; ""))
' "$build/compile_commands.json" >"$database/compile_commands.json"
known=$(jq -r '.[].file' "$database/compile_commands.json" | sed "s|^$PWD/||" | grep -E '\.cc$' | sort -u)
case $which in
  --all) files=$known ;;
  --slice)
    turn=$(git rev-list --count HEAD 2>/dev/null || echo 0)
    files=$({
      git diff --name-only HEAD~1 2>/dev/null | grep -E '\.cc$' | grep -Fx "$known" || true
      printf '%s\n' "$known" | awk -v turn="$turn" 'NR % 80 == turn % 80'
    } | sort -u)
    ;;
  *) shift && files=$(printf '%s\n' "$@") ;;
esac
files=$(printf '%s\n' "$files" | grep . | while read -r file; do [ -e "$file" ] && echo "$file"; done)
echo "tidy: $(printf '%s\n' "$files" | wc -l) of $(printf '%s\n' "$known" | wc -l) files"
printf '%s\n' "$files" | xargs -P "$(nproc)" -n 1 "$tool" --quiet -p "$database" 2>/dev/null
echo "tidy: clean"
