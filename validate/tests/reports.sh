#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reports.sh SCANKIT PYTHON WORK MODULE: the reports of a right and of a wrong module, given to those who read them: JUnit by the
# xunit plugin's XSD, JSON by its schema, the page in a headless browser.
set -euo pipefail
scankit=$1 python=$2 work=$3 module=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "SKIP: no browser here (ci/install-deps.sh --browser)" && exit 77; }
readers=$(fx_report_readers)/bin/python || { echo "SKIP: the readers cannot be installed here" && exit 77; }
rm -rf "$work" && mkdir -p "$work"

# A module whose words are markup: they must stay text.
printf '%s\n' 'def fwd(*args):' \
  '    raise RuntimeError("</p><script>window.hit = 1</script><img src=x onerror=window.hit=1> \x1b[31m &amp; end")' \
  'bwd = fwd' >"$work/hostile.py"
# validated NAME EXPECTED OPTION...
validated() {
  local name=$1 expected=$2 code=0
  shift 2
  "$scankit" validate --python "$python" --device cpu --seed 5 --report "html=$work/$name.html" --report "junit=$work/$name.xml" \
    --report "json=$work/$name.json" "$@" >"$work/$name.txt" 2>"$work/$name.err" || code=$?
  [ "$code" = "$expected" ] || { cat "$work/$name.txt" "$work/$name.err"; echo "$name: exit status $code, not $expected"; exit 1; }
}
right=$root/validate/tests/modules/right.py
some=(--case q011-fp32-b2-d6-l31-n3-g3-D --case q008-fp16-b2-d3-l2-n4-g1-Dz)
validated right 0 --module "$root/validate/tests/modules/tiny_noise.py" --against "$right" --no-timing "${some[@]}"
validated wrong 6 --module "$root/validate/tests/modules/drops_last_odd_step.py" --against "$work/hostile.py" "${some[@]}"
validated hostile 6 --module "$work/hostile.py" --no-timing "${some[@]}"
validated timed 0 --module "$module"
verdict=$("$scankit" validate --python "$python" --device cpu --seed 5 --module "$right" --no-timing -q "${some[@]}" 2>"$work/quiet.err")
[[ $verdict == "PASSED: "* && $verdict != *$'\n'* && ! -s $work/quiet.err ]] || { echo "-q is not the verdict alone: $verdict"; exit 1; }
"$readers" "$root/doctor/report/tests/browser.py" "$browser" "$work"/{right,wrong,hostile,timed}.html
"$readers" - "$root" "$work" <<'PY'
import json, pathlib, sys
import jsonschema
import lxml.etree
root, work = map(pathlib.Path, sys.argv[1:])
schemas = root / "doctor/report/schema"
answer = jsonschema.Draft202012Validator(json.loads((root / "validate/report/schema/validate-1.json").read_text()))
xsd = lxml.etree.XMLSchema(lxml.etree.parse(str(schemas / "third_party/junit-10.xsd")))
for name, failures in (("right", 0), ("wrong", 1), ("hostile", 2), ("timed", 0)):
    tree = lxml.etree.parse(str(work / (name + ".xml")))
    xsd.assertValid(tree)
    answer.validate(json.loads((work / (name + ".json")).read_text()))
    assert tree.getroot().get("failures") == str(failures), (name, tree.getroot().attrib)
PY
echo "ok: the reports of validate"
