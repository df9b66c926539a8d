#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sentence that is added up from halves cannot be translated (doctor/base/say.h). This finds the commonest slip: a
# literal with a word and a space next to a plus sign, where the text is for people, and a printf() with words in it.
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files -co --exclude-standard -- 'doctor/checks/*.cc' 'doctor/checks/*.h' 'doctor/probes/*.cc' 'doctor/elf/*.cc' \
  'doctor/logs/*.cc' 'doctor/cli/*.cc' 'builder/*.cc' 'builder/*.h' 'envspec/*.cc' 'envspec/*.h' 'validate/*.cc' 'validate/*.h' \
  'ci/*.cc' 'ci/*.h' |
  grep -vE '_test\.cc$|/tests/|/testdata/|elf/torch_load|/tool/|logs/lines|preflight/probes/(setup_py|source_text)' |
  grep -vE '^builder/(fix/distribution\.cc$|helpers/fetch/)|^ci/fleet/kubernetes\.cc$' | # markup; a METADATA file is for pip; the helper's texts are complain()'s
  grep -vE '^envspec/export/export(_(containers|pixi))?\.cc$' | # requirements, TOML, YAML, JSON and the files of containers
  xargs -r -d '\n' awk '
  FNR == 1 { files++; carried = "" }  # what the line before ended with
  /^[[:space:]]*(\/\/|#)/ { next }
  {
    rest = $0
    before = carried
    if (FILENAME ~ /^(builder\/[^h]|validate|ci)/ && rest ~ /(printf|format)\(/ && match(rest, /"([^"\\]|\\.)*"/)) {
      pattern = substr(rest, RSTART, RLENGTH)
      gsub(/scankit [a-z]*: |%[-+ #0]*[0-9*]*(\.[0-9*]+)?(z|l|ll|h)?[a-zA-Z%]|\\[a-z0-9]+/, "", pattern)
      if (pattern ~ /[A-Za-z][A-Za-z][A-Za-z]/) {
        print FILENAME ":" FNR ": " $0 " prints a sentence that say() did not say"
        bad = 1
      }
    }
    while (match(rest, /"([^"\\]|\\.)*"/)) {
      literal = substr(rest, RSTART, RLENGTH)
      before = before substr(rest, 1, RSTART - 1)
      rest = substr(rest, RSTART + RLENGTH)
      words = literal ~ /[A-Za-z][A-Za-z]/ && literal ~ / / && literal !~ /[" ]--?[A-Za-z]/  # a command is none
      if (words && (before ~ /\+=?[[:space:]]*$/ || rest ~ /^[[:space:]]*\+/)) {
        print FILENAME ":" FNR ": " literal " is a part of a sentence: say(\"... {} ...\", value) says it whole"
        bad = 1
      }
      before = ""
    }
    carried = before rest
  }
  END {
    if (files < 50) { print "sentences: only " files " files were seen"; exit 1 }
    if (!bad) print "sentences: none is added up"
    exit bad
  }'
