#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reports.sh SCANKIT WORK: the files of a fleet and every report of it, given to those who read them: JSON by its schemas,
# JUnit by the xunit plugin's XSD, Markdown by a renderer, the page in a headless browser, the manifests by Kubernetes' own
# schemas. Texts in the files are markup where they can be: they must stay text.
set -euo pipefail
scankit=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "SKIP: no browser here (ci/install-deps.sh --browser)" && exit 77; }
readers=$(fx_report_readers)/bin/python || { echo "SKIP: the readers cannot be installed here" && exit 77; }
kubernetes=$(fx_kubernetes_schemas)/bin/kubernetes-validate || { echo "SKIP: the schemas cannot be installed here" && exit 77; }
rm -rf "$work" && mkdir -p "$work"/{real,mixed}

# One real result; its launcher is this shell.
"$scankit" fleet node --fleet f1 --out "$work/real" --node real --command-sha256 c1 --launched "$(date +%s.%3N)" -- \
  doctor --no-import >"$work/lines"
"$readers" "$here/make_fleet.py" "$work/real/real.json" "$work/whole" 40
"$readers" "$here/make_fleet.py" "$work/real/real.json" "$work/mixed" 40 --broken
# reported NAME EXPECTED
reported() {
  local name=$1 code=0
  "$scankit" fleet report "$work/$name" --report "json=$work/$name.json" --report "junit=$work/$name.xml" \
    --report "markdown=$work/$name.md" --report "prometheus=$work/$name.prom" --report "html=$work/$name.html" >"$work/$name.txt" || code=$?
  [ "$code" = "$2" ] || { cat "$work/$name.txt" && echo "$name: exit status $code, not $2" && exit 1; }
}
reported mixed 1
# The real result may be one of a machine without a Python: all of them then are as it is.
reported whole "$("$readers" -c 'import json, sys; print(json.load(open(sys.argv[1]))["exit_status"])' "$work/real/real.json")"
for folder in whole mixed; do
  "$readers" "$here/readers.py" "$root/ci/fleet/schema" "$root/doctor/report/schema/third_party/junit-10.xsd" "$work/$folder" \
    "$work/$folder"
done
"$readers" "$root/doctor/report/tests/browser.py" "$browser" "$work"/{whole,mixed}.html
if grep -q $'\x1b' "$work/mixed.txt" "$work/mixed.md"; then echo "a terminal escape came through" && exit 1; fi

# The line by which a node hands its result over is read from a log; with another node's it is a fleet of two.
mkdir "$work/log"
"$scankit" fleet node --fleet f1 --node logged --command-sha256 c1 -- doctor --no-import | sed 's/^/[pod\/a\/scankit] /' >"$work/log/fleet.log"
cp "$work/real/real.json" "$work/log/"
"$scankit" fleet report "$work/log" --expect real,logged,gone --json >"$work/log.json" || true
"$readers" - "$work/log.json" <<'PY'
import json, sys
states = {node["node"]: node["state"] for node in json.load(open(sys.argv[1]))["nodes"]}
assert states == {"real": "answered", "logged": "answered", "gone": "never_answered"}, states
PY

for kind in daemonset "job --k8s-nodes 3"; do
  for claim in '' '--claim results --gpus 8 --namespace gpu --node-selector a=true'; do
    # shellcheck disable=SC2086
    "$scankit" fleet run --k8s --k8s-kind $kind $claim --image scankit:1 --out "$work/manifest.yaml" -- \
      validate --python /opt/venv/bin/python --seed 7
    "$kubernetes" --strict --quiet "$work/manifest.yaml"
    sed 's/"spec.nodeName"/7/' "$work/manifest.yaml" >"$work/wrong.yaml"
    ! "$kubernetes" --strict --quiet "$work/wrong.yaml" >/dev/null 2>&1 || { echo "the schemas accept anything" && exit 1; }
  done
done
echo "ok: the reports of a fleet"
