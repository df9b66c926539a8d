#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# consumers.sh readers|browser SCANKIT WORK: gives the reports of recorded machines to those who read them. readers: JSON
# and SARIF by their published schemas, JUnit by the xunit plugin's XSD, workflow commands by their grammar, Markdown by a
# renderer. browser: the page, opened in a headless browser.
set -euo pipefail
what=$1 scankit=$2 work=$3/$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
# shellcheck source=ci/fixtures.sh
. "$root/ci/fixtures.sh"
rm -rf "$work" && mkdir -p "$work"

browser=
if [ "$what" = browser ]; then
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    { echo "SKIP: no browser here (ci/install-deps.sh --browser)" && exit 77; }
fi
readers=$(fx_report_readers)/bin/python || { echo "SKIP: the readers cannot be installed here" && exit 77; }

"$readers" "$here/make_snapshots.py" "$root/doctor/tests" "$work" "$what"
stems=() pages=()
for snapshot in "$work"/*.snapshot.json; do
  stem=${snapshot%.snapshot.json} code=0
  "$scankit" doctor --from "$snapshot" --gpu sm_90 --driver 580.65.06 --report "json=$stem.json" --report "sarif=$stem.sarif" \
    --report "junit=$stem.xml" --report "html=$stem.html" --report "markdown=$stem.md" --report "github=$stem.github" --report "prometheus=$stem.prom" --report "otlp=$stem.otlp" \
    >"$stem.txt" || code=$?
  case $code in 0 | 1 | 4) ;; *) echo "exit status $code of $snapshot" && exit 1 ;; esac
  stems+=("$stem")
  pages+=("$stem.html")
done
[ "$what" = browser ] || "$readers" "$here/validate.py" "$root/doctor/report/schema" "${stems[@]}"
[ "$what" = readers ] || "$readers" "$here/browser.py" "$browser" "${pages[@]}"
echo "ok: ${#pages[@]} reports"
