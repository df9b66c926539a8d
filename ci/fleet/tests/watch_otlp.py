# SPDX-License-Identifier: Apache-2.0
"""watch_otlp.py OTLP PROMETHEUS: curl sends the file OTLP to a server that accepts what a collector accepts, and what arrives there
is compared with the file PROMETHEUS of the same report."""
import http.server
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import prometheus_client.parser
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

received = []


class Collector(http.server.BaseHTTPRequestHandler):
    """OTLP/HTTP: POST of JSON to /v1/metrics. What is no such request is refused with 400, as the specification says."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = 200, "{}"
        try:
            if (self.path, self.headers["Content-Type"]) != ("/v1/metrics", "application/json"):
                raise ValueError(f"{self.path} of {self.headers['Content-Type']}")
            received.append(json_format.Parse(body, service.ExportMetricsServiceRequest()))
            answer = json_format.MessageToJson(service.ExportMetricsServiceResponse())
        except (json_format.ParseError, ValueError) as wrong:
            status, answer = 400, json.dumps({"message": str(wrong)})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


def send(file, port):
    """As the page for administrators prints it."""
    return subprocess.run(["curl", "--fail", "--silent", "--show-error", "-H", "Content-Type: application/json", "--data-binary", f"@{file}",
                           f"http://127.0.0.1:{port}/v1/metrics"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).returncode


def samples_of(request):
    """{(name, labels): value} of every data point."""
    found, now = {}, time.time()
    [resource] = request.resource_metrics
    told = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert told["service.name"] == "scankit" and told["service.version"], told
    [scope] = resource.scope_metrics
    for metric in scope.metrics:
        assert metric.WhichOneof("data") == "gauge" and metric.description, metric
        for point in metric.gauge.data_points:
            assert 0 <= now - point.time_unix_nano / 1e9 < 600, point
            key = metric.name, tuple(sorted((one.key, one.value.string_value) for one in point.attributes))
            assert key not in found, key
            found[key] = point.as_double
    return found


def main(otlp, prometheus):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    assert send(otlp, port) == 0 and len(received) == 1, "the collector refused it"
    sent = samples_of(received[0])
    file = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in prometheus_client.parser.text_string_to_metric_families(Path(prometheus).read_text()) for sample in family.samples}
    assert len(sent) > 20 and sent == file, f"only by OTLP: {sent.keys() - file.keys()}; only in the file: {file.keys() - sent.keys()}"
    text = Path(otlp).read_text()
    for place, damage in (('"asDouble"', '"asDoubel"'), ('"timeUnixNano": "', '"timeUnixNano": "x'), ('"dataPoints"', '"points"')):
        damaged = Path(otlp).with_suffix(".damaged")
        damaged.write_text(text.replace(place, damage, 1))
        assert damaged.read_text() != text and send(damaged, port) != 0, f"a request with {damage} is accepted"
    print(f"ok: {len(sent)} values by OTLP, and 3 damages refused")


main(*sys.argv[1:])
