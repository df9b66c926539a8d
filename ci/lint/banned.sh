#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Words that may not stand in the sources, each with its reason. `banned.sh` greps the files git would ship.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0

# ban REASON PATTERN PATHSPEC...: reports each line that matches.
ban() {
  local reason=$1 pattern=$2 hits
  shift 2
  hits=$(git ls-files -co --exclude-standard -- "$@" | grep -v '^ci/lint/' | xargs -r -d '\n' grep -HnE -- "$pattern" |
    grep -vE '^[^:]+:[0-9]+:[[:space:]]*(//|#|\*)' || true)
  [ -n "$hits" ] || return 0
  printf '%s\n' "$hits" | sed "s|\$|   <- $reason|"
  status=1
}

# The linker warns of these only where they are linked plainly; of iconv_open it never does, since libstdc++ links it too.
main_sources=('doctor/*.cc' 'doctor/*.h' 'builder/*.cc' 'builder/*.h' 'envspec/*.cc' 'envspec/*.h' 'validate/*.cc'
  'validate/*.h' 'ci/*.cc' 'ci/*.h' ':!builder/helpers/gpu/*' ':!builder/helpers/fetch/*' ':!validate/guard/*' ':!doctor/tests/e2e/*' ':!*_test.cc' ':!*/testdata/*')
ban 'a static glibc program dies in it on a foreign host (ARCHITECTURE.md, decision 1)' \
  '\b(iconv_open|dlopen|dlmopen|getpw(nam|uid|ent)(_r)?|getgr(nam|gid)(_r)?|getaddrinfo|gethostbyname|getservbyname|initgroups)[[:space:]]*\(' \
  "${main_sources[@]}"
ban 'user files are read with pread: a truncated mapping kills us with SIGBUS' '\bmmap[[:space:]]*\(' "${main_sources[@]}"
ban 'loads a locale archive or throws; use std::locale::classic()' 'std::locale\(""\)|setlocale[[:space:]]*\(' "${main_sources[@]}"
ban 'the shell is never asked: pass an argument list to doctor/base/process.h' '\b(system|popen)[[:space:]]*\(' "${main_sources[@]}"
ban 'each unit that calls it compiles a parser or a writer: parse_json(), dump_json(), json_document() of doctor/model/json.h' \
  '[Jj]son::parse\(|[])a-z]\.dump\(' "${main_sources[@]}" ':!doctor/model/json.cc' ':!ci/fuzz/*' ':!doctor/checks/recorded_cases.cc' ':!*_test.h'

ban 'checks name circumstances, and doctor/model/finding.cc decides; only a policy may overrule it' \
  'policy_severity = ' "${main_sources[@]}" ':!ci/gate/policy_apply.cc'
ban 'what a finding follows from is decided in root_cause.cc, by root_cause.def' '\bbecause_of = ' "${main_sources[@]}" \
  ':!doctor/checks/root_cause.cc' ':!ci/gate/policy_apply.cc' ':!doctor/report/json.cc'

# An error and a fact are in no language until somebody reads them: who builds one with say() has chosen already.
ban 'an Error holds a Message: message(), and who prints it translates' 'Errc::[A-Z][A-Za-z]*, say(_n)?\(' "${main_sources[@]}"
ban 'facts are Messages, so no code has to switch the language while it collects them' '\bconst Speaking ' \
  "${main_sources[@]}" ':!doctor/program.cc' ':!doctor/report/sinks.cc' ':!validate/command.cc'

# Users sit behind mirrors: their own installer knows the index. A host in a file would be the wrong one.
hosts='py''pi\.org|pythonhosted\.org|download\.pytorch\.org|deb\.deb''ian\.org|archive\.ubuntu\.com|conda\.ana''conda\.org|ngc\.nvidia\.com|developer\.download\.nvidia'
hits=$(git ls-files -co --exclude-standard | xargs -r -d '\n' grep -HnIE -- "$hosts" || true)
if [ -n "$hits" ]; then
  printf '%s\n' "$hits" | sed 's|$|   <- a package registry host: the user'"'"'s own installer and its configuration choose|'
  status=1
fi

# One SPDX line a file.
missing=$(git ls-files -co --exclude-standard -- '*.cc' '*.h' '*.cu' '*.cuh' '*.sh' '*.cmake' '*.py' '*CMakeLists.txt' '*.def' |
  while read -r file; do
    { [ ! -s "$file" ] || head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; } || echo "$file: no SPDX line"
  done)
[ -z "$missing" ] || { printf '%s\n' "$missing"; status=1; }
[ $status -ne 0 ] || echo "banned words: none"
exit $status
