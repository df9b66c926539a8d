# SPDX-License-Identifier: Apache-2.0
"""What stays compatible: the golden files of each format version, read by the command that reads that format.

Each is copied to where a user has it, and the test asserts what the command understood of it. A file of a newer version must be
refused in one sentence that says what to do. `make.py` makes the files of the present versions.
"""
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import formats
from fixtures import python_with_torch, run, shell_or_skip, site_of

pytestmark = pytest.mark.ctest(group="formats", labels="ci;e2e")
V1 = formats.HERE / "1"
MADE_IN = "/tmp/scankit-formats"  # the directory of make.py
PAGE = "<!DOCTYPE html><html>not found</html>\n"


def content(name):
    return json.loads((V1 / f"{name}.json").read_text())


def newer(name, work, place="schema", value=2, suffix=".json"):
    """A copy of the golden file that says it is of a later version."""
    file = work / f"newer-{name}{suffix}"
    if suffix == ".yaml":
        file.write_text((V1 / f"{name}.yaml").read_text().replace("schema: 1", f"schema: {value}", 1))
    else:
        file.write_text(json.dumps({**content(name), place: value}))
    assert file.read_bytes() != (V1 / f"{name}{suffix}").read_bytes()
    return file


def refused(result, status=2, advice="use the scankit that wrote it, or a newer one"):
    """Nothing was read of it, and one sentence says why and what to do."""
    assert result.status == status, result
    [line] = [line for line in result.err.splitlines() if "schema" in line]
    assert advice in line, result


def missing_keys(then, now, path=""):
    """What is in the older document and not in the newer: within one schema fields are only added."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            if key in now:
                yield from missing_keys(value, now[key], f"{path}/{key}")
            else:
                yield f"{path}/{key}"
    elif isinstance(then, list) and isinstance(now, list):
        for value, other in zip(then[:1], now[:1]):
            yield from missing_keys(value, other, f"{path}/0")
    elif then is not None and now is not None and type(then) is not type(now) and not {type(then), type(now)} <= {int, float}:
        yield f"{path} is {type(now).__name__} and was {type(then).__name__}"


def has_all_of(name, now, maps=()):
    """`maps`: fields whose keys are data."""
    gone = list(missing_keys({key: value for key, value in content(name).items() if key not in maps}, now))
    assert not gone, f"what {name}-1 had is gone: {gone}"


@pytest.fixture
def bare(work):
    """The Python of an environment without packages."""
    run("python3", "-m", "venv", "--without-pip", work / "env")
    return work / "env/bin/python"


@pytest.fixture
def broken(bare):
    """The same with what a failed download leaves in the place of the module."""
    (site_of(bare) / "selective_scan_cuda.abi3.so").write_text(PAGE)
    return bare


# Every format -------------------------------------------------------------------------------------------------------------

def test_complete(work):
    """A schema has a golden file, and a golden file a schema; and both are missed where they are missing."""
    assert not formats.without_golden() and not formats.without_schema()
    root = work / "tree"
    (root / "a/schema").mkdir(parents=True)
    for file in formats.schemas().values():
        shutil.copy(file, root / "a/schema")
    shutil.copytree(V1, root / "golden/1")
    assert not formats.without_golden(root, root / "golden") and not formats.without_schema(root, root / "golden")
    (root / "a/schema/lock-2.json").write_text("{}")
    (root / "golden/1/record.json").unlink()
    assert formats.without_golden(root, root / "golden") == ["lock-2", "record-1"]
    (root / "a/schema/spec-1.json").unlink()
    (root / "a/new.cc").write_text('constexpr const char* kNew = "urn:scankit:fleet-map:3";\n')
    assert formats.without_schema(root, root / "golden") == ["fleet-map-3", "spec-1"]


def test_schemas(work):
    """Each golden file follows its schema; and a file that lost a required field, or whose version is another, does not."""
    readers = Path(shell_or_skip("fx_report_readers")) / "bin/python"

    def judged(*files):
        done = subprocess.run([readers, "-B", formats.HERE / "formats.py", *files], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, done.stdout

    files = list(formats.golden().values())
    status, said = judged(*files)
    assert status == 0 and f"ok: {len(files)} files" in said, said
    damaged = []
    (work / "1").mkdir()
    for file in files:
        copy = work / "1" / file.name
        if file.suffix == ".yaml":
            copy.write_text(file.read_text().replace("schema: 1", "schema: 0", 1))
        else:
            document, schema = json.loads(file.read_text()), json.loads(formats.schemas()[file.stem, 1].read_text())
            del document[schema["required"][0]]
            copy.write_text(json.dumps(document))
        damaged.append(copy)
    status, said = judged(*damaged)
    silent = [copy.name for copy in damaged if f"1/{copy.name}: " not in said]
    assert status == 1 and not silent, f"no damage is seen in {silent}: {said}"


# Files that scankit reads -------------------------------------------------------------------------------------------------

def test_snapshot(scankit, work):
    done = scankit.doctor("--from", V1 / "snapshot.json")
    done.diagnosis("broken", "corrupt_binary")
    has_all_of("doctor", done.json)
    assert done.json["root"]["cause"] == content("doctor")["root"]["cause"]
    refused(scankit("doctor", "--from", newer("snapshot", work)))


def test_spec(scankit, work, bare):
    done = scankit("env", "check", "--spec", V1 / "spec.yaml", "--python", bare, "--json")
    assert done.status == 7 and "drift_torch" in [one["cause"] for one in done.json["findings"]], done
    refused(scankit("env", "check", "--spec", newer("spec", work, suffix=".yaml"), "--python", bare), advice="use a newer scankit")


def test_lock(scankit, work, bare):
    """What it has and an empty environment lacks is the drift."""
    # With an installer, as where the golden answer was made: without one its repairs are advice.
    path = f"{shell_or_skip('fx_installers')}/bin:/usr/bin:/bin"
    done = scankit("env", "check", "--lock", V1 / "lock.json", "--python", bare, "--json", variables={"PATH": path}).ends(7)
    told = json.dumps(done.json["findings"])
    assert "alpha" in told and "beta" in told, done
    # Of a Python that is not the locked one a finding comes first, whose repair has other fields than the golden answer's.
    packages = [one for one in done.json["findings"] if one["cause"] == "drift_lock_package"]
    has_all_of("env-check", {**done.json, "root": packages[0], "findings": packages})
    refused(scankit("env", "check", "--lock", newer("lock", work, value="2.0"), "--python", bare))
    # A newer minor version is read: what it adds is left unread, and its integrity is still checked.
    edited = work / "minor.lock"
    edited.write_text(json.dumps({**content("lock"), "schema": "1.7"}))
    scankit("env", "check", "--lock", edited, "--python", bare).ends(2, "was edited after scankit wrote it: schema")


def test_diff(scankit):
    done = scankit("env", "diff", V1 / "lock.json", V1 / "snapshot.json", "--json")
    has_all_of("env-diff", done.json)
    assert {"lock", "snapshot"} == {done.json["left"]["kind"], done.json["right"]["kind"]}, done


def test_history(scankit, bare):
    """What the lock has and an empty environment lacks, and that nothing records why."""
    done = scankit("env", "check", "--since", V1 / "lock.json", "--python", bare, "--json").ends(7)
    has_all_of("env-history", done.json)
    gone = {one["field"]: (one["before"], one["after"]) for one in done.json["unexplained"]}
    assert gone["packages.alpha"] == ("1.0", None), done


def test_record(scankit, work, bare):
    """The compiled file that it lists is not in an empty environment."""
    record = content("record")
    (work / "env/.scankit").mkdir()
    shutil.copy(V1 / "record.json", work / "env/.scankit/record.json")
    done = scankit("env", "check", "--record", work / "env").ends(7, record["libraries"][0]["path"])
    assert record["signature"] == content("env-create")["record"]["signature"], done
    shutil.copy(newer("record", work), work / "env/.scankit/record.json")
    refused(scankit("env", "check", "--record", work / "env"))


def test_policy(scankit, work, broken):
    """It makes a warning of the cause that fails without it."""
    answer = scankit("ci", "run", "--python", broken, "--json").ends(1)
    has_all_of("ci-run", answer.json)
    scankit("ci", "run", "--python", broken, "--policy", V1 / "policy.yaml").ends(0)
    refused(scankit("ci", "run", "--python", broken, "--policy", newer("policy", work, suffix=".yaml")), advice="use a newer scankit")


@pytest.mark.ctest(fixtures="torch_env")
def test_module(scankit, work, bare):
    """The plan of a build of its sources names what it declares, and so does the answer for programs."""
    (site_of(bare) / "torch.pth").write_text(f"{site_of(python_with_torch())}\n")
    (work / "src/tests").mkdir(parents=True)
    (work / "src/setup.py").write_text("from setuptools import setup\nsetup(name='my-ext')\n")
    (work / "src/tests/smoke.py").write_text("")
    shutil.copy(V1 / "module.yaml", work / "src/scankit.module.yaml")
    words = ["fix", "--python", bare, "--from-source", work / "src", "--dry-run", "--json"]
    [step] = scankit(*words).ends(0).json["steps"]
    assert step["declared"]["imports"] == ["my_ext._C", "my_ext.ops", "my_ext._fused", "my_ext"], step
    assert step["declared"]["variables"] == {"MY_EXT_FORCE_BUILD": "TRUE", "TORCH_CUDA_ARCH_LIST": "8.0;9.0+PTX"}, step
    shutil.copy(newer("module", work, suffix=".yaml"), work / "src/scankit.module.yaml")
    refused(scankit(*words), status=1, advice="use a newer scankit")


def test_step(scankit, work, broken):
    """With the key and the hash of an answer that is there, the golden file is that answer's; a newer one is run again."""
    step, answer = work / "kept/doctor.step.json", work / "kept/doctor.json"

    def made_again():
        before = answer.stat().st_mtime_ns
        scankit("ci", "run", "--python", broken, "--out", "kept", "--resume").ends(1)
        return answer.stat().st_mtime_ns != before

    scankit("ci", "run", "--python", broken, "--out", "kept").ends(1)
    here = json.loads(step.read_text())
    then = {**content("step"), "key": here["key"], "answer_sha256": hashlib.sha256(answer.read_bytes()).hexdigest()}
    step.write_text(json.dumps(then))
    assert not made_again() and json.loads(step.read_text()) == then
    step.write_text(json.dumps({**then, "schema": 2}))
    assert made_again()


def test_fleet(scankit, work):
    (work / "fleet").mkdir()
    for name, file in (("fleet-node", "node1.json"), ("fleet-roster", "fleet.json")):
        shutil.copy(V1 / f"{name}.json", work / "fleet" / file)
    done = scankit("fleet", "report", work / "fleet", "--json")
    has_all_of("fleet-report", done.json, maps=["common"])
    states = {node["node"]: (node["state"], node["verdict"]) for node in done.json["nodes"]}
    assert states["node1"] == ("answered", "failed") and states["node2"][0] != "answered", done
    assert [one["cause"] for one in done.json["causes"]] == ["corrupt_binary"], done
    shutil.copy(newer("fleet-node", work, "$schema", "urn:scankit:fleet-node:2"), work / "fleet/node1.json")
    text = (work / "fleet/node1.json").read_text().replace('"$schema": ', '"$schema":', 1)  # as a node writes it
    (work / "fleet/node1.json").write_text(text)
    done = scankit("fleet", "report", work / "fleet", "--json")
    [node] = [node for node in done.json["nodes"] if node["node"] == "node1"]
    assert node["state"] == "newer" and "merge with that one" in node["why"], node
    shutil.copy(newer("fleet-roster", work, "$schema", "urn:scankit:fleet-roster:2"), work / "fleet/fleet.json")
    # Nothing of the list is used, and without a list the fleet is not known to be whole.
    done = scankit("fleet", "report", work / "fleet").ends(4)
    done.has_line("unknown: fleet.json has schema urn:scankit:fleet-roster:2, .*; use the scankit that wrote it, or a newer one$")


@pytest.mark.ctest(fixtures="torch_env")
def test_manifest(scankit, work):
    python = ["--python", python_with_torch(), "--module", "causal_conv1d_cuda", "--arch", "sm_90", "--explain"]
    done = scankit("build", *python, V1 / "manifest.json", "--json")
    assert done.status == 0 and done.json["module"] == content("manifest")["module"] == "causal_conv1d_cuda", done
    assert len(done.json["images"]) == len(content("manifest")["images"]), done
    refused(scankit("build", *python, newer("manifest", work)))


def test_journal(scankit, work, bare):
    """restore brings the file back that the journal says was there."""
    def write(schema, reached="committed"):
        journal = (V1 / "journal.json").read_text().replace(MADE_IN, str(work)).replace('"schema": 1', f'"schema": {schema}')
        journal = journal.replace('"committed"', f'"{reached}"')
        (state / "journal").mkdir(parents=True, exist_ok=True)
        (state / "journal" / f"{content('journal')['id']}.json").write_text(journal)
        return json.loads(journal)

    state = work / "env/.scankit"
    [saved] = [one for one in write(2)["operations"] if one["kind"] == "replace"]
    Path(saved["backup"]).parent.mkdir(parents=True)
    Path(saved["backup"]).write_text(PAGE)
    refused(scankit("restore", "--python", bare), status=1)
    assert not Path(saved["target"]).exists()
    write(2, "applying")
    done = scankit("doctor", "--python", bare)
    assert "0001.json is not a journal that this scankit reads" in done.text and "was interrupted" not in done.text, done
    write(1, "applying")
    assert "a scankit fix of causal_conv1d_cuda was interrupted" in scankit("doctor", "--python", bare).text
    write(1)
    scankit("restore", "--python", bare).ends(0)
    assert Path(saved["target"]).read_text() == PAGE


@pytest.mark.ctest(fixtures="torch_env", timeout=600)
def test_validate(scankit, work, build):
    """As a baseline."""
    module = build / "modules/selective_scan_cuda.abi3.so"
    words = ["--python", python_with_torch(), "--module", module, "--against", module, "--device", "cpu", "--case",
             "q011-fp32-b2-d6-l31-n3-g3-D", "--seed", "5", "--json"]
    done = scankit("validate", *words, "--baseline", V1 / "validate.json", timeout=500)
    has_all_of("validate", {**done.json, "baseline": None})
    assert done.json["baseline"]["file"] == str(V1 / "validate.json"), done
    here = [timing["baseline"]["ratio"][0] for timing in done.json["timing"] if "baseline" in timing]
    # On another processor the times are not compared, and that is said.
    if done.json["baseline"]["problem"] is None:
        assert len(here) == len(done.json["timing"]) > 0 and min(here) > 0, done
    else:
        assert not here and "the baseline was taken on" in done.json["baseline"]["problem"], done
    refused(scankit("validate", *words, "--baseline", newer("validate", work)))


# Answers for other programs: what they had, they have ------------------------------------------------------------------------

def test_answers(scankit, work, broken):
    has_all_of("selftest", scankit("selftest", "--json").ends(0).json)
    has_all_of("version", scankit("--version", "--json").ends(0).json)
    has_all_of("doctors", scankit("doctor", "--json", "--from", V1 / "snapshot.json", "--from", V1 / "snapshot.json").ends(1).json)
    module = site_of(broken) / "selective_scan_cuda.abi3.so"
    has_all_of("matrix", scankit("doctor", "--so", module, "--torch", "2.11", "--json").json)
    has_all_of("env-suggest", scankit("env", "suggest", "--gpu", "sm_90", "--driver", "550.54", "--glibc", "2.28", "--python", "3.11",
                                      "--offline", "--json").ends(0).json)
    has_all_of("fix", scankit("fix", "--python", broken, "--dry-run", "--json").json, maps=["steps"])
    changed = content("doctor")
    changed["moved"] = changed.pop("verdict")
    assert list(missing_keys(content("doctor"), changed)) == ["/verdict"]


def test_commands(scankit):
    """Every command and option of then is one of now."""
    def names(document):
        return {(command["path"], name) for command in document["commands"] for option in [{"names": [""]}, *command["options"]]
                for name in option["names"]}

    now = scankit("man", "--json").ends(0).json
    has_all_of("commands", now)
    assert len(names(now)) > 200 and not names(content("commands")) - names(now)
