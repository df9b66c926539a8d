# SPDX-License-Identifier: Apache-2.0
"""readers.py SCHEMAS JUNIT_XSD FOLDER STEM...: the files of a fleet, and its reports STEM.json, .xml, .md, .prom, by their schemas."""
import json
import pathlib
import sys

import jsonschema
import lxml.etree
import markdown_it
import prometheus_client.parser


def schema_of(text, schemas):
    name = json.loads(text)["$schema"]
    schema = json.loads((schemas / f"{name.removeprefix('urn:scankit:').replace(':', '-')}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == name
    return schema


def check_prometheus(text, report):
    """As the textfile collector: every family has its TYPE and HELP, no sample stands there twice."""
    families, samples = {}, set()
    for family in prometheus_client.parser.text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation, family.name
        families[family.name] = family.samples
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples and sample.labels["command"] == "fleet", key
            samples.add(key)
    counts = {sample.labels["verdict"]: sample.value for sample in families["scankit_fleet_nodes"]}
    assert counts == {word: report["counts"][word] for word in ("passed", "failed", "unknown")}, counts
    told = {sample.labels["node"] for sample in families["scankit_fleet_node"]}
    assert told == {node["node"] for node in report["nodes"] if node["verdict"] != "passed"}, told
    verdicts = {sample.labels["verdict"]: sample.value for sample in families["scankit_fleet_verdict"]}
    assert verdicts[report["verdict"]] == 1 and sum(verdicts.values()) == 1, verdicts


def main(schemas, xsd, folder, *stems):
    schemas, seen = pathlib.Path(schemas), 0
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        text = path.read_text()
        if "urn:scankit:fleet-" not in text or not text.endswith("}\n"):
            continue
        jsonschema.validate(json.loads(text), schema_of(text, schemas))
        seen += 1
    assert seen > 1, f"{seen} files in {folder}"
    junit = lxml.etree.XMLSchema(lxml.etree.parse(xsd))
    for stem in stems:
        text = pathlib.Path(stem + ".json").read_text()
        report = json.loads(text)
        jsonschema.validate(report, schema_of(text, schemas))
        tree = lxml.etree.parse(stem + ".xml")
        junit.assertValid(tree)
        counts = report["counts"]
        assert tree.getroot().get("failures") == str(counts["failed"]), tree.getroot().attrib
        assert tree.getroot().get("errors") == str(counts["unknown"] + len(report["problems"])), tree.getroot().attrib
        assert counts["nodes"] == len(report["nodes"]) == counts["passed"] + counts["failed"] + counts["unknown"]
        html = markdown_it.MarkdownIt("commonmark").enable("table").render(pathlib.Path(stem + ".md").read_text())
        assert "<h2>scankit fleet" in html and "<script" not in html and "<img" not in html, html[:400]
        check_prometheus(pathlib.Path(stem + ".prom").read_text(), report)
        print("ok:", stem)


main(*sys.argv[1:])
