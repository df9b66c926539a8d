# SPDX-License-Identifier: Apache-2.0
"""Several environments in one run: each is diagnosed by itself, and the worst decides the status."""
import pytest

from fixtures import follows_schema

pytestmark = pytest.mark.ctest(group="several", fixtures="torch_env;modules")


@pytest.fixture
def good(environment):
    env = environment(name="good")
    env.link_good()
    return env


@pytest.fixture
def broken(environment):
    env = environment(name="broken")
    env.link_stale()
    return env


def test_the_worst_decides(scankit, good, broken):
    done = scankit("doctor", "--python", good.python, "--python", broken.python)
    done.ends(1, "1 of 2 environments are healthy")
    done.has_line(rf"{good.python}: healthy$").has_line(rf"{broken.python}: broken \(torch_version_mismatch\)$")
    assert done.out.index(str(good.python)) < done.out.index(str(broken.python)), done
    scankit("doctor", "--python", good.python, "--python", good.python).ends(0, "all 2 environments are healthy")


def test_fail_on_makes_nothing_healthy(scankit, broken):
    done = scankit("doctor", "--fail-on", "never", "--python", broken.python, "--python", broken.python)
    done.ends(0, "0 of 2 environments are healthy").has_line(rf"{broken.python}: broken")


def test_one_that_cannot_be_read_hides_no_other(scankit, good, work):
    done = scankit("doctor", "--python", work / "none/bin/python", "--python", good.python)
    done.ends(2, f"{good.python}: healthy")
    assert str(work / "none/bin/python") in done.err, done
    done.has_line("none/bin/python: cannot be examined$")


def test_json_holds_each_answer(scankit, good, broken):
    done = scankit("doctor", "--json", "--python", good.python, "--python", broken.python)
    assert done.status == 1, done
    assert [(one["place"], one["exit_status"], one["answer"]["verdict"]) for one in done.json["environments"]] == \
        [(str(good.python), 0, "healthy"), (str(broken.python), 1, "broken")]
    alone = scankit.doctor("--python", broken.python)
    assert done.json["environments"][1]["answer"]["root"] == alone.json["root"]
    assert (done.json["$schema"], done.json["exit_status"]) == ("urn:scankit:doctors:1", 1)
    follows_schema(done.out)


def test_stored_snapshots(scankit, good, broken, work):
    for name, env in [("good", good), ("broken", broken)]:
        (work / f"{name}.json").write_text(scankit("snapshot", "--python", env.python).ends(0).out)
    done = scankit("doctor", "--from", work / "good.json", "--from", work / "broken.json")
    done.ends(1, "1 of 2 environments are healthy").has_line(rf"{work}/broken.json: broken")


def test_redacted_names_no_home(scankit, good):
    done = scankit("doctor", "--redact", "--json", "--python", "/home/kim/none/bin/python", "--python", good.python,
                   variables={"HOME": "/home/kim"})
    assert done.status == 2 and "kim" not in done.text, done
    assert done.json["environments"][0] == {"place": "environment 1", "exit_status": 2, "answer": None}


FOR_ONE = {
    "report": (["--report", "junit=x.xml"], "--report is for one environment"),
    "snapshot": (["--snapshot", "x.json"], "--snapshot is for one environment"),
    "torch": (["--so", "x.so", "--torch", "all"], "give all versions in one --python"),
}


@pytest.mark.parametrize("option", ["report", "snapshot", "torch"])
def test_for_one(scankit, work, option):
    words, named = FOR_ONE[option]
    scankit("doctor", "--python", "a", "--python", "b", *words).refused(named)
    assert not list(work.glob("x.*"))
