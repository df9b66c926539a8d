#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares every #include "folder/..." of the tracked C++ and CUDA sources with ci/layering.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."

sources=$(git ls-files -co --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh' '*.def' | grep -v '^doctor/tests/e2e/module/')
[ -n "$sources" ] || { echo "layering: no sources found" >&2; exit 1; }
# shellcheck disable=SC2086
grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' $sources | awk -v rules=ci/layering.txt '
  function longest(path, table,    best, folder) {  # the rule whose folder is the longest prefix of path
    best = ""
    for (folder in table)
      if ((path == folder || index(path, folder "/") == 1) && length(folder) > length(best)) best = folder
    return best
  }
  function allows(list, included,    parts, count, i) {
    count = split(list, parts, " ")
    for (i = 1; i <= count; i++) if (included == parts[i] || index(included, parts[i] "/") == 1) return 1
    return 0
  }
  BEGIN {
    while ((getline line < rules) > 0) {
      sub(/#.*/, "", line)
      if (line !~ /:/) continue
      folder = line; sub(/:.*/, "", folder); sub(/^[^:]*:/, "", line)
      if (folder ~ /^tests /) { sub(/^tests /, "", folder); tests[folder] = line } else may[folder] = line
    }
  }
  {
    split($0, field, ":")
    file = field[1]; number = field[2]
    included = $0; sub(/^[^"]*"/, "", included); sub(/".*/, "", included)
    if (included !~ /\//) next  # generated, or beside the file
    checked++
    owner = longest(file, may)
    if (owner == "") { print file ":" number ": no line of ci/layering.txt covers this file"; bad = 1; next }
    if (index(included, owner "/") == 1) next
    if (allows(may[owner], included)) next
    test_owner = longest(file, tests)
    if (file ~ /_test\.(cc|cu|h)$/ && test_owner != "" && allows(tests[test_owner], included)) next
    if (included !~ /^(doctor|kernels|builder|envspec|validate|ci)\//) next  # a library
    print file ":" number ": " owner " may not include " included " (ci/layering.txt)"
    bad = 1
  }
  END {
    if (!checked) { print "layering: nothing was checked"; exit 1 }
    print "layering: " checked " includes checked"
    exit bad
  }'
