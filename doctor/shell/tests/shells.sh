#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shells.sh CASE SCANKIT: the completion of a real shell, or the manual page under a real checker.
set -euo pipefail
case_name=$1 scankit=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$scankit" "$work/scankit"
PATH=$work:$PATH
die() { echo "FAIL: $*" >&2 && exit 1; }
needs() { command -v "$1" >/dev/null || { echo "SKIP: no $1 here (ci/install-deps.sh)" && exit 77; }; }

# expect LINE WORD...: completing LINE offers all of these; offers_not LINE WORD: and not that one.
expect() {
  local line=$1 offered word
  offered=$(complete_line "$line")
  for word in "${@:2}"; do grep -Fxq -- "$word" <<<"$offered" || die "\"$line\" offers no $word, but: $offered"; done
}
offers_not() { ! complete_line "$1" | grep -Fxq -- "$2" || die "\"$1\" offers $2"; }

common() {
  expect 'scankit ' help doctor fix validate env ci fleet completion man
  expect 'scankit doc' doctor
  expect 'scankit env ' init lock check diff
  expect 'scankit ci init ' github gitlab policy
  expect 'scankit doctor --' --python --json --report --verbose --help
  offers_not 'scankit doctor --' --flavor
  expect 'scankit doctor --color ' auto always never
  expect 'scankit --lang de doctor --color a' auto always
  expect 'scankit doctor --python doctor --fail-on ' error warning
  expect 'scankit explain abi_c' abi_cxx11_mismatch
  expect 'scankit completion ' bash zsh fish
}

shells_bash() {
  scankit completion bash >"$work/script"
  complete_line() {
    bash --norc -c '
      . "$1"
      line=$2 words=()
      # As readline cuts it: at blanks, and at "=" which is a word of its own.
      for word in ${line//=/ = }; do words+=("$word"); done
      case $line in *" ") words+=("") ;; esac
      COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$line
      _scankit && printf "%s\n" "${COMPREPLY[@]}"' bash "$work/script" "$1"
  }
  common
  expect 'scankit doctor --color=' auto always never
  expect 'scankit doctor --color=al' always
  [ -z "$(complete_line 'scankit doctor --out ' | tr -d '\n')" ] || die "bash keeps the names of files from --out"
  [ "$(bash --norc -c '. "$1" && complete -p scankit' bash "$work/script")" = 'complete -o default -F _scankit scankit' ] ||
    die "bash does not know the completion"
}

shells_fish() {
  needs fish
  scankit completion fish >"$work/script"
  fish --no-config --no-execute "$work/script" || die "fish does not read it"
  complete_line() { fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$work/script" "$1" | cut -f 1; }
  common
  : >"$work/there.json"
  (cd "$work" && expect 'scankit doctor --from ' there.json) || exit 1
}

shells_zsh() {
  needs zsh
  mkdir "$work/functions"
  scankit completion zsh >"$work/functions/_scankit"
  zsh -f -n "$work/functions/_scankit" || die "zsh does not read it"
  complete_line() { zsh -f "$here/zsh_complete.zsh" "$work" "$1"; }
  common
}

shells_man() {
  needs mandoc
  scankit man >"$work/scankit.1"
  # A page without a date is the same page in every build.
  mandoc -T lint -W warning "$work/scankit.1" 2>&1 | grep -v 'missing date' >"$work/lint" || true
  [ ! -s "$work/lint" ] || die "mandoc: $(cat "$work/lint")"
  mandoc -T utf8 "$work/scankit.1" | sed 's/.\x08//g' >"$work/text"
  local command
  for command in doctor build fix restore 'env lock' validate 'ci run' 'fleet report' completion man; do
    grep -Eq "^ +scankit $command( |\$)" "$work/text" || die "the manual does not tell of scankit $command"
  done
  # Every option that a command's help shows is in the manual, and with it its text.
  scankit doctor --help | grep -oE -- '--[a-z-]+' | sort -u | while read -r option; do
    [ "$option" = --help ] || grep -Fq -- "$option" "$work/text" || die "the manual does not tell of $option"
  done
  grep -Fq 'scankit doctor --log build.log' "$work/text" || die "the manual has no examples"
}

# The data follow their schema, and have every option that a help shows.
shells_data() {
  export SCANKIT_TEST_PYTHON=${SCANKIT_TEST_PYTHON-}
  # shellcheck source=ci/fixtures.sh
  . "$here/../../../ci/fixtures.sh"
  local readers
  readers=$(fx_report_readers) || { echo "SKIP: no readers of reports (no network)" && exit 77; }
  scankit man --json >"$work/data.json"
  "$readers/bin/python" "$here/../../report/tests/follows_schema.py" "$here/../../report/schema" <"$work/data.json"
  jq -r '.commands[].path' "$work/data.json" | while read -r command; do
    # shellcheck disable=SC2086 # words
    scankit $command --help | sed '/^Examples:/,$d' |
      sed -nE 's/^ {2,6}((-[a-zA-Z]|--[a-z0-9-]+)(, (-[a-zA-Z]|--[a-z0-9-]+))*).*/\1/p' | tr -d ' ' | tr , '\n' | sort >"$work/help"
    jq -r --arg path "$command" '.commands[] | select(.path == $path) | .options[].names[]' "$work/data.json" | sort >"$work/data"
    diff "$work/help" "$work/data" || die "the options of scankit $command differ (left: its help, right: the data)"
  done
  [ "$(jq '[.commands[] | select(.commands == [])] | length' "$work/data.json")" -ge 25 ] || die "commands are missing"
  ! grep -q '"--json"' <(jq '.commands[] | select(.path == "man")' "$work/data.json") || die "a hidden option is told"
}

shells_full_disk() {
  local status=0
  local command
  for command in man --help 'env schema' 'doctor --from /dev/null' 'explain'; do
    status=0
    # shellcheck disable=SC2086 # words
    scankit $command >/dev/full 2>"$work/said" || status=$?
    if [ "$command" = 'doctor --from /dev/null' ]; then
      [ $status = 2 ] || die "what prints nothing ends with $status on a full disk"
      continue
    fi
    [ $status = 3 ] || die "scankit $command on a full disk ends with $status: $(cat "$work/said")"
    grep -q 'cannot write to standard output: No space left on device' "$work/said" || die "no reason: $(cat "$work/said")"
  done
  scankit completion tcsh >"$work/out" 2>"$work/said" && die "tcsh is taken"
  grep -q tcsh "$work/said" || die "not told: $(cat "$work/said")"
}

"shells_$case_name"
