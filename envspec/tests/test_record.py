# SPDX-License-Identifier: Apache-2.0
"""The record of `env create`, compared by `env check`, `ci run`, a fleet and `env diff`: real environments, really changed."""
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from fixtures import run, site_of
from lock_wheels import wheel
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.record", labels="ci;e2e", timeout=600)

POLICY = "schema: 1\nallow_empty: true\nrecord: %s\nsteps: {env_check: {enabled: false}, validate: {enabled: false}}\n"


@pytest.fixture
def made(create):
    """`new`, made from the lock of the project."""
    create("new").ends(0)
    create.site = site_of(os.path.abspath("new/bin/python"))
    return create


def gate(create, *words):
    return create.project.scankit("ci", "run", "--python", "new/bin/python", "--no-import", "--json", *words)


def summaries(result):
    return [finding["summary"] for finding in result.json["findings"]]


def test_packages(made):
    """Each change is named: another version, a package that was added, installed again, or removed."""
    made.project.env("check", "--record", "new").ends(0)
    alpha = next(made.site.glob("alpha-*.dist-info"))
    alpha.rename(alpha.with_name("alpha-1.1.dist-info"))
    shutil.rmtree(next(made.site.glob("tool-*.dist-info")))
    (made.site / "extra-3.0.dist-info").mkdir()
    os.utime(next(made.site.glob("beta-*.dist-info")) / "RECORD")
    record = "new/.scankit/record.json"
    assert sorted(summaries(made.project.env("check", "--record", "new", "--json").ends(7))) == [
        "beta 2.0 was installed again after %s was written" % record,
        "extra 3.0 is installed but is not in %s" % record,
        "%s records alpha 1.0, but 1.1 is installed" % record,
        "%s records tool 1.0, which is not installed" % record]


def test_gate(made):
    """`ci run` under a policy with `record`: it passes, names what differs, and refuses an environment without a record."""
    Path("scankit-ci.yaml").write_text(POLICY % "new")
    result = gate(made).ends(0)
    assert [step["name"] for step in result.json["steps"]] == ["env check --record new", "doctor"], result.json["steps"]
    assert result.json["steps"][0]["seconds"] < 5, result.json["steps"]
    library = made.site / "beta/_c.abi3.so"
    library.write_bytes(library.read_bytes() + b"x")
    result = gate(made).ends(7)
    assert result.json["root"]["cause"] == "drift_lock_file" and result.json["root"]["subject"] == "beta/_c.abi3.so", result.json
    # A cause of the policy may be allowed, as for every other step.
    Path("scankit-ci.yaml").write_text(POLICY % "new" + "causes: {drift_lock_file: {severity: note}}\n")
    gate(made).ends(0)
    # Two environments, of which one was not made by scankit.
    Path("scankit-ci.yaml").write_text(POLICY % "[new, ../env]")
    result = gate(made).ends(2)
    assert "../env has no record: " in json.dumps(result.json["unknown"]), result.json["unknown"]
    # The lock that an environment is made from.
    made.project.uninstall("tool")
    made.project.env("lock", "--python", made.project.python, "--offline", "--out", "other.lock").ends(0)
    Path("scankit-ci.yaml").write_text(POLICY % "{new: other.lock}" + "causes: {drift_lock_file: {severity: error}}\n")
    assert "the environment was made from another lock than other.lock" in summaries(gate(made).ends(7))


def test_resumed_gate_compares_again(made):
    Path("scankit-ci.yaml").write_text(POLICY % "new")
    gate(made, "--out", "answers").ends(0)
    os.utime(made.site / "beta/_c.abi3.so")
    gate(made, "--out", "answers", "--resume").ends(7)


def test_fleet(made):
    """Three nodes, two of them with the same environment: the third is named, with its package."""
    made("same").ends(0)
    wheel(made.project.index.served, "tool", "1.1", "py3-none-any", {"tool.py": b"def hello():\n    print('hi')\n"})
    made.project.index.stop()
    made.project.index.serve()
    made.project.install("tool==1.1")
    made.project.lock().ends(0)
    made("other").ends(0)
    for node, folder in (("a", "new"), ("b", "other"), ("c", "same")):
        made.project.scankit("fleet", "node", "--fleet", "f1", "--node", node, "--command-sha256", "c1", "--out", "results", "--",
                             "env", "check", "--record", folder).ends(0)
    report = made.project.scankit("fleet", "report", "results", "--expect", "a,b,c", "--json")
    [record] = [one for one in report.json["differences"] if one["fact"] == "record"]
    assert [other["nodes"] for other in record["others"]] == [["b"]], record
    assert record["with_it"] == ["record lock", "record package tool"], record
    text = made.project.scankit("fleet", "report", "results", "--expect", "a,b,c").out
    assert "(package: tool)" in text, text


def test_diff(made):
    """A record and each other kind; two records."""
    record = "new/.scankit/record.json"
    made("same").ends(0)
    for other in ("new", "scankit.lock", "same/.scankit/record.json"):
        made.project.env("diff", record, other).ends(0, "0 differences, 0 unknown")
    made.project.scankit("snapshot", "--python", "new/bin/python", "--no-import", "--out", "new.json").ends(0)
    made.project.env("diff", "new.json", record).ends(0)
    library = made.site / "beta/_c.abi3.so"
    library.write_bytes(library.read_bytes() + b"x")
    (made.site / "extra-3.0.dist-info").mkdir()
    (made.site / "extra-3.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 3.0\n")
    result = made.project.env("diff", record, "new", "--json").ends(7)
    assert [one["field"] for one in result.json["differences"]] == ["files.beta/_c.abi3.so", "packages.extra"], result.json
    Path("cut.json").write_text(text_of(record)[:300])
    made.project.env("diff", "cut.json", "new").ends(2, "cut.json")


def test_milliseconds(made):
    """The whole comparison, with the start of the program, is a matter of milliseconds: the best of nine is far below 0.2 s."""
    times = []
    for _ in range(9):
        begin = time.monotonic()
        made.project.env("check", "--record", "new").ends(0)
        times.append(time.monotonic() - begin)
    assert min(times) < 0.2, times
    assert run("new/bin/python", "-c", "print(1)") == "1\n"
