#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# watching.sh SCANKIT WORK: the metrics of a fleet in the hands of those who watch it. OTLP is sent by curl to a server that reads
# it as a collector does; the file for Prometheus goes through node_exporter into a real Prometheus, which runs every query of the
# dashboard of `scankit ci init grafana`. Each check is shown to fail on a damage.
set -euo pipefail
scankit=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../fixtures.sh"
command -v curl >/dev/null || { echo "SKIP: curl not found" && exit 77; }
watchers=$(fx_watchers) || { echo "SKIP: Prometheus or OpenTelemetry's formats cannot be had here" && exit 77; }
rm -rf "$work" && mkdir -p "$work"/{real,textfile}

"$scankit" fleet node --fleet f1 --out "$work/real" --node real --command-sha256 c1 --launched "$(date +%s.%3N)" -- \
  doctor --no-import >/dev/null
"$watchers/bin/python" "$here/make_fleet.py" "$work/real/real.json" "$work/fleet" 40 --broken
"$scankit" fleet report "$work/fleet" --report "json=$work/fleet.json" --report "otlp=$work/otlp.json" \
  --report "prometheus=$work/textfile/scankit.prom" >/dev/null || [ $? = 1 ]
"$scankit" ci init grafana --out "$work" >/dev/null
"$watchers/bin/python" -B "$here/watch_otlp.py" "$work/otlp.json" "$work/textfile/scankit.prom"
"$watchers/bin/python" -B "$here/watch_prometheus.py" "$watchers/debian/usr/bin" "$work" "$work/scankit-dashboard.json"
