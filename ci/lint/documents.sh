#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# documents.sh: a document that a file names is in the repository, every path that ARCHITECTURE.md names and every file that
# README.md and its translation link to exists, they are read in a minute (120 lines), and the text of each document keeps to
# 100 columns (tables, transcripts and one long `code` cannot be wrapped).
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
files() { git ls-files -co --exclude-standard -- "$@" | grep -vE '^ci/(lint|fuzz)/|^doctor/tests/corpus/(open|shut)' | while read -r file; do [ -f "$file" ] && echo "$file"; done; }

# NAME.md in capitals, as documents of a project are named.
mapfile -t documents < <(files '*.md' | xargs -n 1 basename | sort -u)
while IFS=: read -r file line name; do
  grep -qFx "$name" < <(printf '%s\n' "${documents[@]}") && continue  # no pipe: grep -q would end printf by SIGPIPE
  echo "$file:$line: names $name, which is not in the repository"
  status=1
done < <(files | xargs -d '\n' grep -nIoE '\b[A-Z][A-Z_]{3,}\.md\b' || true)

while read -r path; do
  [ -e "$path" ] && continue
  echo "ARCHITECTURE.md: names $path, which does not exist"
  status=1
done < <(grep -oE '`[A-Za-z_.-]+/[A-Za-z_./-]*`' ARCHITECTURE.md | tr -d '\140' | sort -u)

for readme in README.md README.zh_CN.md; do
  while read -r path; do
    [ -e "$path" ] && continue
    echo "$readme: links to $path, which does not exist"
    status=1
  done < <(tr '\n' ' ' <$readme | grep -oE '\]\([^)#: ]+\)' | sed 's/^](//; s/)$//' | sort -u)
  [ "$(wc -l <$readme)" -le 120 ] || { echo "$readme: $(wc -l <$readme) lines, and 120 are the limit; the pages of the site are in ci/docs" && status=1; }
done

long=$(files '*.md' | xargs -d '\n' python3 -B ci/lint/columns.py | grep -vE '^[^:]+:[0-9]+:(\||    )|`[^`]{60,}`' || true)
[ -z "$long" ] || { cut -c 1-120 <<<"$long" && echo "the lines above are longer than 100 columns" && status=1; }
[ $status -ne 0 ] || echo "documents: every one is here"
exit $status
