# SPDX-License-Identifier: Apache-2.0
"""watch_prometheus.py PROGRAMS WORK DASHBOARD: WORK/textfile through node_exporter into Prometheus, which runs each query of the
dashboard; and the dashboard itself, read by Grafana's own model of it. WORK/fleet.json is the report."""
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

# What Grafana reads and its model does not have: the questions at the import, and a copy of a variable's query.
BESIDES = {"/__inputs", "/templating/list/0/definition"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answer(url, wait=0.0):
    """The JSON behind a URL; tried again for `wait` seconds."""
    end = time.monotonic() + wait
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as got:
                return json.load(got)["data"]
        except (urllib.error.URLError, ConnectionError) as wrong:
            if time.monotonic() > end:
                raise AssertionError(f"{url}: {wrong.read().decode() if hasattr(wrong, 'read') else wrong}") from None
            time.sleep(0.2)


def lost(read, kept, path=""):
    """What the model of Grafana does not keep: misspelled and misplaced fields."""
    if isinstance(read, dict):
        for key, value in read.items():
            yield from lost(value, kept[key], f"{path}/{key}") if isinstance(kept, dict) and key in kept else [f"{path}/{key}"]
    elif isinstance(read, list):
        for index, (value, other) in enumerate(zip(read, kept)):
            yield from lost(value, other, f"{path}/{index}")
    elif read != kept:
        yield path


def model_loses(dashboard):
    return set(lost(dashboard, json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder)))) - BESIDES


def query(base, expression):
    expression = expression.replace("$fleet", ".*")
    return answer(f"{base}/query?" + urllib.parse.urlencode({"query": expression}), wait=1)["result"]


def check(base, dashboard, counts):
    """Every query has a result, and those of the counts are the report's."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            found = query(base, target["expr"])
            assert found, f"{panel['title']}: no result of {target['expr']}"
            word = panel["title"].split()[0].lower()
            if panel["title"].endswith(" nodes") and word in counts:
                assert float(found[0]["value"][1]) == counts[word], (panel["title"], found)
    [variable] = dashboard["templating"]["list"]
    assert variable["definition"] == variable["query"]["query"] == "label_values(scankit_fleet_exit_status, fleet)"
    assert answer(f"{base}/label/fleet/values") == ["f1"]


def main(programs, work, dashboard):
    work, dashboard = Path(work), json.loads(Path(dashboard).read_text())
    assert not model_loses(dashboard), model_loses(dashboard)
    wrong = json.loads(json.dumps(dashboard))
    wrong["panels"][0]["gridPoss"] = wrong["panels"][0].pop("gridPos")
    assert "/panels/0/gridPoss" in model_loses(wrong), "a misspelled field is not seen"
    counts = json.loads((work / "fleet.json").read_text())["counts"]
    exporter, server = free_port(), free_port()
    (work / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: node\n    static_configs:\n"
        f"      - targets: ['127.0.0.1:{exporter}']\n")
    running = []
    with open(work / "log", "wb") as log:
        try:
            for words in ([f"{programs}/prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                           f"--collector.textfile.directory={work}/textfile", f"--web.listen-address=127.0.0.1:{exporter}"],
                          [f"{programs}/prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
                           f"--web.listen-address=127.0.0.1:{server}"]):
                running.append(subprocess.Popen(words, stdout=log, stderr=log))
            base = f"http://127.0.0.1:{server}/api/v1"
            answer(f"{base}/status/runtimeinfo", wait=60)
            end = time.monotonic() + 60
            while not query(base, "scankit_fleet_nodes"):
                assert time.monotonic() < end, "node_exporter gives no metric of scankit"
                time.sleep(0.5)
            errors = query(base, "node_textfile_scrape_error")
            assert [one["value"][1] for one in errors] == ["0"], f"node_exporter refuses the file: {errors}"
            check(base, dashboard, counts)
            try:
                check(base, json.loads(json.dumps(dashboard).replace("scankit_fleet_outlier", "scankit_fleet_outliers")), counts)
            except AssertionError as seen:
                assert "no result of" in str(seen), seen
            else:
                raise AssertionError("a query of a metric that does not exist is not seen")
        finally:
            for process in running:
                process.terminate()
                process.wait()
    print(f"ok: {sum(len(panel['targets']) for panel in dashboard['panels'])} queries of {len(dashboard['panels'])} panels")


main(*sys.argv[1:])
