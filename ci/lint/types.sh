#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two types of one name in one namespace, each in its own header: no file includes both, so no compiler complains, and the
# linker keeps one of the two destructors for both (C++ [basic.def.odr]).
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files -co --exclude-standard 'doctor/*.h' 'builder/*.h' 'envspec/*.h' 'validate/*.h' 'ci/*.h' | grep -v '^builder/helpers/gpu/' | xargs awk '
  FNR == 1 { space = "" }
  /^(inline )?namespace [a-z_:0-9]+ \{/ { space = space "::" $(NF - 1) }
  match($0, /^(struct|class|enum class|enum) [A-Za-z_0-9]+/) && /\{/ {
    split(substr($0, RSTART, RLENGTH), words, " ")
    name = space "::" words[words[2] == "class" ? 3 : 2]
    if (name in seen && seen[name] != FILENAME) { print name ": " seen[name] " and " FILENAME; bad = 1 }
    seen[name] = FILENAME
  }
  END { exit bad }'
