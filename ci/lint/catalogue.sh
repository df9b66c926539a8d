#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# catalogue.sh BUILD [PO...]: extracts every text for people into BUILD/scankit.pot, from which translations are made, and
# checks that no source of texts was missed, and of every translation (each PO; without one, those of doctor/text) that it
# is complete, keeps the places for values and uses the terms of its glossary. BUILD is a build tree in which
# scankit_text_tables was built. The file is not committed: it follows from the sources.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
[ $# -gt 0 ] || set -- doctor/text/*.po
pot=$build/scankit.pot
tables=$build/doctor/text/scankit_text_tables
[ -x "$tables" ] || { echo "catalogue: build scankit_text_tables first ($tables)" >&2; exit 1; }
command -v xgettext >/dev/null || { echo "SKIP: xgettext not found (package gettext)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Texts only: with line numbers, half of all commits would touch the file. Sorted: two branches that add a sentence each
# then meet only where their sentences are neighbours. extract OUT LANGUAGE KEYWORDS PATTERNS...: what xgettext finds.
extract() {
  local out=$1 language=$2 keywords=$3
  shift 3
  # shellcheck disable=SC2086
  git ls-files -co --exclude-standard -- "$@" | grep -vE '_test\.cc$|/tests/|/testdata/' | LC_ALL=C sort |
    xgettext --files-from=- --language="$language" --from-code=UTF-8 --keyword $keywords --add-location=file \
      --package-name=scankit --output="$work/one.raw"
  sed 's/charset=CHARSET/charset=UTF-8/' "$work/one.raw" >"$work/$out"
}
extract sources.pot C++ "--keyword=say:1 --keyword=sayable:1 --keyword=say_n:2,3 --keyword=message:1 --keyword=message_n:2,3" \
  'doctor/*.cc' 'doctor/*.h' 'builder/*.cc' 'builder/*.h' 'envspec/*.cc' 'envspec/*.h' 'validate/*.cc' 'validate/*.h' \
  'ci/*.cc' 'ci/*.h'
"$tables" >"$work/tables.pot"
msgcat --use-first --add-location=file --sort-output --no-wrap "$work"/{sources,tables}.pot |
  sed -e '/^"POT-Creation-Date:/d' -e '/^#, [a-z+, -]*-format$/d' -e '1,/^msgid/{/^#/d}' >"$pot.$$"
mv "$pot.$$" "$pot"  # another run may read it

# A keyword that xgettext no longer finds, or a folder that the patterns miss, loses its texts silently.
for part in sources tables; do
  found=$(grep -c '^msgid ' "$work/$part.pot")
  case $part in
    sources) expected=1500 ;;
    *) expected=300 ;;
  esac
  [ "$found" -ge "$expected" ] ||
    { echo "catalogue: only $found texts in $part, fewer than the $expected that there must be"; exit 1; }
done
msgcat "$pot" >/dev/null  # well-formed
status=0
for po; do
  [ -e "$po" ] || continue
  msgfmt --check-header --check-domain -o "$work/one.mo" "$po"
  "$build/doctor/text/scankit_check_translation" "$work/one.mo" "$po" || status=1
  python3 -B ci/lint/translation.py "$pot" "$po" || status=1
done
[ $status -eq 0 ] || { echo "catalogue: msgmerge and doctor/text/README.md say how a translation is brought up to date"; exit 1; }
echo "catalogue: $(grep -c '^msgid ' "$pot") texts in $pot"
