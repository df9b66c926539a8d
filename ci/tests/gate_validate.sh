#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gate_validate.sh SCANKIT PYTHON: scankit ci run where validate is one of its steps, with modules that are right and wrong, and
# its reports in the hands of those who read them. PYTHON has torch.
set -euo pipefail
# shellcheck source=ci/tests/checks.sh
. "$(dirname "$0")/../../ci/tests/checks.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
scankit=$(realpath "$1") modules=$root/validate/tests/modules
skip_without_torch "$2"
readers=$(fx_report_readers)/bin/python || { echo "SKIP: the readers cannot be installed here" && exit 77; }
export XDG_CACHE_HOME=$work/cache LC_ALL=C
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX GITHUB_ACTIONS GITHUB_STEP_SUMMARY
venv_beside "$2" "$work/env"
python=$work/env/bin/python
mkdir "$work/project" "$work/reports" && cd "$work/project"
policy() { # MODULE [MORE]
  printf 'schema: 1\nsteps:\n  validate: {enabled: true, args: [--module, "%s", --device, cpu, --no-timing, --seed, "5", %s]}\n%s\n' \
    "$modules/$1.py" '--case, q011-fp32-b2-d6-l31-n3-g3-D' "${2:-}" >scankit-ci.yaml
}
run() { # NAME EXPECTED
  local stem=$work/reports/$1
  status_is "$2" "$scankit" ci run --python "$python" --report "json=$stem.json" --report "junit=$stem.xml" \
    --report "sarif=$stem.sarif" --report "github=$stem.github" --report "markdown=$stem.md" --report "prometheus=$stem.prom" --report "otlp=$stem.otlp"
}
causes() { "$readers" -c 'import json, sys; print(*(f["cause"] + ":" + f["severity"] for f in json.load(open(sys.argv[1]))["findings"]))' "$work/reports/$1.json"; }

policy right
check "a right module passes" run right 0
policy swaps_B_and_C
check "a wrong one ends with validate's own status" run wrong 6
check "and with its cause" test "$(causes wrong)" = validation_failed:error
check "whose results are named" says "swaps_B_and_C"
policy swaps_B_and_C 'causes: {validation_failed: {allowed_until: 2999-12-31, reason: known}}'
check "an allowance holds for it, too" run allowed 0
policy fails_to_import
check "one that cannot be imported fails" run broken 6
check "and not as one that computes wrong" sh -c '! grep -q "does not compute" "$1"/out' sh "$work"
check "but with what its message says" says "does not import: ImportError: undefined symbol: _ZN3c105ErrorE"
# The installed module: doctor names the cause, and validate does not say it once more.
printf '<html>404</html>' >"$site/selective_scan_cuda$suffix"
rm scankit-ci.yaml
check "a module that the doctor finds broken" run installed 1
check "is one fault" test "$(causes installed)" = corrupt_binary:error
printf 'schema: 1\ncauses: {corrupt_binary: {allowed_until: 2999-12-31, reason: known}}\nsteps: {validate: {enabled: true, args: [--device, cpu, --no-timing]}}\n' >scankit-ci.yaml
check "what the policy allows does not fail by what follows from it" run installed_allowed 0
check "also where validate is demanded" says "selective_scan_cuda does not import"
rm "$site/selective_scan_cuda$suffix"
policy crashes_on_groups
check "one that crashes fails" run crashed 6
check "all reports are read by their readers" "$readers" "$root/doctor/report/tests/validate.py" "$root/doctor/report/schema" \
  "$work"/reports/{right,wrong,allowed,broken,installed,installed_allowed,crashed}
end
