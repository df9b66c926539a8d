# SPDX-License-Identifier: Apache-2.0
"""scankit.module.yaml: what a package declares about its modules, and what `fix --from-source` and `fix --wheel` do with it."""
import os
import re
import shutil
import signal
import time
import zipfile

import pytest

from test_fix_given import WORKS, here, refused, sources, untouched, wheel_of  # noqa: F401

pytestmark = pytest.mark.ctest(group="fix_declared", timeout=1200, fixtures="torch_env")

DECLARED = """\
schema: 1
distribution: my-ext
modules:
  - name: my_ext._C
    imports: [my_ext, my_ext.ops]
build:
  torch: "1.13"
  isolation: false
  variables: {MY_EXT_FORCE_BUILD: "TRUE", MAX_JOBS: "1"}
"""
# The build writes down which switches it was given.
SEES = 'open("my_ext/seen.py", "w").write(f"switch = {os.environ.get(\'MY_EXT_FORCE_BUILD\')!r}")'


def declaring(folder, text=DECLARED, ops="from my_ext import _C\n", **how):
    sources(folder, slow=SEES, **how)
    (folder / "my_ext/ops.py").write_text(ops)
    (folder / "scankit.module.yaml").write_text(text)
    return folder


def packed(wheel, place, text):
    """The wheel with the file in it; RECORD need not list it."""
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(place, text)
    return wheel


def test_source(here, work, monkeypatch):  # noqa: F811
    """Its variables reach the build, after they were shown; one that the user has set stays."""
    folder = declaring(work / "src")
    before = here.everything()
    plan = here.fix("--from-source", folder, "--dry-run").ends(0, "it asks for MY_EXT_FORCE_BUILD=TRUE in the build")
    assert re.search("MAX_JOBS=1 .*MY_EXT_FORCE_BUILD=TRUE .*pip.* wheel", plan.out), plan
    assert "import torch, my_ext._C, my_ext, my_ext.ops" in plan.out, plan
    # What a command names, and is gone with this run, has no path that somebody might type.
    assert re.search("wheel .*WORK/wheels", plan.out) and "WORK = a temporary directory of this run" in plan.out, plan
    assert "scankit-build" not in plan.out and "scankit-build" not in here.fix("--from-source", folder, "--dry-run", "--json").out, plan
    untouched(here, before)
    done = here.fix("--from-source", folder, "--yes", "--json").ends(0)
    [step] = done.json["steps"]
    assert step["declared"]["imports"] == ["my_ext._C", "my_ext", "my_ext.ops"], step
    assert step["declared"]["variables"] == {"MY_EXT_FORCE_BUILD": "TRUE", "MAX_JOBS": "1"}, step
    assert here.runs(WORKS) == "1.0"
    seen = "import my_ext.seen; print(my_ext.seen.switch)"
    assert here.runs(seen) == "TRUE"
    monkeypatch.setenv("MY_EXT_FORCE_BUILD", "FALSE")
    here.fix("--from-source", folder, "--yes").ends(0)
    assert here.runs(seen) == "FALSE"
    here.restore().ends(0), here.restore().ends(0)
    assert here.everything() == before


def test_declared_module_that_does_not_import(here, work):  # noqa: F811
    """The compiled module works, and a module that the file declares does not: taken back."""
    folder = declaring(work / "src", ops="import of_nobody\n")
    before = here.everything()
    result = here.fix("--from-source", folder, "--yes").ends(6, "No module named 'of_nobody'").ends(6, "nothing was changed")
    assert f"{folder}/scankit.module.yaml declares that they import" in result.err, result
    assert here.everything() == before


@pytest.mark.ctest(labels="matrix;e2e")
def test_wheel(here, work):  # noqa: F811
    """In .dist-info or in the package; the same check, and a wheel that declares another package is refused."""
    folder = declaring(work / "src", ops="import of_nobody\n")
    before = here.everything()
    for place in ("my_ext-1.0.dist-info/scankit.module.yaml", "my_ext/scankit.module.yaml"):
        wheel = packed(wheel_of(folder, work / place.split("/")[0]), place, DECLARED)
        here.fix("--wheel", wheel, "--dry-run").ends(0, f"{wheel}/{place}")
        here.fix("--wheel", wheel, "--yes").ends(6, "No module named 'of_nobody'")
        assert here.everything() == before
    misspelled = packed(wheel_of(folder, work / "misspelled"), "my_ext/scankit.module.yaml", DECLARED.replace("modules:", "module:"))
    said = here.scankit("doctor", "--python", here.python, "--so", misspelled).out
    assert f'{misspelled}/my_ext/scankit.module.yaml:3:1: unknown field "module"; did you mean "modules"?' in said, said
    matrix = here.scankit("doctor", "--so", misspelled, "--torch", "2.11", "--json").json
    assert [note.split(";")[0] for note in matrix["notes"]] == [f'{misspelled}/my_ext/scankit.module.yaml:3:1: unknown field "module"'], matrix
    other = packed(wheel_of(folder, work / "other"), "my_ext/scankit.module.yaml", DECLARED.replace("distribution: my-ext", "distribution: torch"))
    refused(here, 1, "describes torch, and the wheel is of my_ext", "--wheel", other)
    (folder / "my_ext/ops.py").write_text("")
    works = packed(wheel_of(folder, work / "works"), "my_ext/scankit.module.yaml", DECLARED)
    here.fix("--wheel", works, "--yes").ends(0)
    assert here.runs(WORKS) == "1.0"


def test_doctor_of_the_installed_package(here, work):  # noqa: F811
    """doctor examines what an installed package declares, misses a declared module, and prints the declared switches."""
    folder = declaring(work / "src")
    wheel = packed(wheel_of(folder, work / "wheel"), "my_ext/scankit.module.yaml", DECLARED)
    here.fix("--wheel", wheel, "--yes").ends(0)
    here.scankit("doctor", "--python", here.python).ends(0, "my_ext/_C")
    (here.site / "my_ext-1.0.dist-info/direct_url.json").unlink()  # as an index installs it: its sources can be had again
    [module] = here.site.glob("my_ext/_C*.so")
    whole = module.read_bytes()
    module.unlink()
    absent = here.scankit("doctor", "--python", here.python).ends(1)
    assert "my-ext declares the module my_ext._C in" in absent.out, absent
    assert "MY_EXT_FORCE_BUILD=TRUE MAX_JOBS=1" in absent.out.replace("'", ""), absent
    module.write_bytes(whole[:len(whole) // 8])
    cut = here.scankit("doctor", "--python", here.python).ends(1, "corrupt_binary")
    assert "MY_EXT_FORCE_BUILD=TRUE" in cut.out, cut
    # A wrong declaration is named by --so of the module's file too, and by the matrix; not for a file of another package.
    module.write_bytes(whole)
    wrong = f'{here.site}/my_ext/scankit.module.yaml:3:1: unknown field "module"; did you mean "modules"?'
    (here.site / "my_ext/scankit.module.yaml").write_text(DECLARED.replace("modules:", "module:"))
    assert wrong in here.scankit("doctor", "--python", here.python, "--so", module).out
    assert wrong in here.scankit("doctor", "--so", module, "--torch", "2.11").out
    dist_info = here.site / "my_ext-1.0.dist-info/scankit.module.yaml"
    (here.site / "my_ext/scankit.module.yaml").rename(dist_info)
    other = work / "other_package.so"
    other.write_bytes(whole)
    assert str(dist_info) in here.scankit("doctor", "--python", here.python, "--so", module).out
    assert "scankit.module.yaml" not in here.scankit("doctor", "--python", here.python, "--so", other).out
    dist_info.unlink()
    module.write_bytes(whole[:len(whole) // 8])
    older = (here.site / "my_ext/scankit.module.yaml")
    older.write_text(DECLARED.replace("1.13", "99"))
    assert "torch>=99" in here.scankit("doctor", "--python", here.python).out
    module.write_bytes(whole)


def test_current_directory(here, work, monkeypatch):  # noqa: F811
    """A file of the current directory is not run because an installed package declares a module of its name; nor is its pip."""
    folder = declaring(work / "src")
    declared = DECLARED.replace("modules:", "modules:\n  - name: my_ext_extra")
    wheel = packed(packed(wheel_of(folder, work / "wheel"), "my_ext/scankit.module.yaml", declared), "my_ext_extra.py", "")
    here.fix("--wheel", wheel, "--yes").ends(0)
    clone = work / "clone"
    clone.mkdir()
    monkeypatch.chdir(clone)
    obeyed = f"open({str(work / 'obeyed')!r}, 'a').write(__name__)\n"
    (clone / "my_ext_extra.py").write_text(obeyed)
    told = here.scankit("doctor", "--python", here.python).ends(0, "my_ext/_C")
    assert f"imports {clone}/my_ext_extra.py instead of the installed my_ext_extra" in " ".join(told.out.split()), told
    assert not (work / "obeyed").exists(), (work / "obeyed").read_text()
    # The user has asked: as the user's own command does it.
    here.scankit("doctor", "--python", here.python, "--module", "my_ext_extra")
    assert (work / "obeyed").exists()
    (here.site / "my_ext-1.0.dist-info/direct_url.json").unlink()
    [module] = here.site.glob("my_ext/_C*.so")
    module.write_bytes(module.read_bytes()[:5000])
    plain = here.scankit("doctor", "--python", here.python).ends(1, "MY_EXT_FORCE_BUILD=TRUE")
    assert "cd / &&" not in plain.out, plain
    (clone / "pip").mkdir()
    (clone / "pip/__init__.py").write_text("")
    told = here.scankit("doctor", "--python", here.python).ends(1, "MY_EXT_FORCE_BUILD=TRUE")
    assert re.search(r"cd / && (?:[A-Z_]+=\S+ )+\S+ -m pip install", told.out), told


@pytest.mark.ctest(labels="matrix;e2e")
def test_refused(here, work):  # noqa: F811
    """In one line, before anything of the package is run."""
    folder = declaring(work / "src")
    before = here.everything()

    def said(status, what, text):
        (folder / "scankit.module.yaml").write_text(text)
        refused(here, status, what, "--from-source", folder)

    said(1, "a file may not set this variable", DECLARED.replace("MY_EXT_FORCE_BUILD", "LD_PRELOAD"))
    said(1, "a path is not allowed", DECLARED.replace('"TRUE"', '"/tmp/evil"'))
    said(1, "needs torch 99 or newer", DECLARED.replace("1.13", "99"))
    said(1, "scankit.module.yaml:2:1: unknown field", DECLARED.replace("distribution", "distributoin"))
    said(1, "anchors", DECLARED.replace("modules:", "modules: &a"))
    said(1, "is not a Python file below the directory", DECLARED + 'test: {file: "../smoke.py"}\n')
    (work / "outside.py").write_text("")
    (folder / "smoke.py").symlink_to(work / "outside.py")
    said(1, "leads out of", DECLARED + "test: {file: smoke.py}\n")
    assert not (folder / "my_ext/seen.py").exists(), "the build was started"
    (folder / "scankit.module.yaml").write_text(DECLARED.replace("my-ext", "another"))
    here.fix("--from-source", folder, "--yes").ends(5, "describes another, and the wheel is of my_ext").ends(5, "nothing was changed")
    untouched(here, before)


# The smoke test -----------------------------------------------------------------------------------------------------------

SMOKE = """\
import torch
import my_ext._C
print("smoke says", my_ext._C.device())
assert my_ext._C.device() == "EXPECTED", "another device than EXPECTED"
"""


def with_smoke_test(folder, expected):
    declaring(folder, DECLARED + "test: {file: tests/smoke.py}\n")
    (folder / "tests").mkdir()
    (folder / "tests/smoke.py").write_text(SMOKE.replace("EXPECTED", expected))
    return folder


def test_smoke_test(here, work):  # noqa: F811
    """It cannot import the module before, and passes after."""
    folder = with_smoke_test(work / "src", "cuda")
    before = here.everything()
    here.fix("--from-source", folder, "--dry-run").ends(0, f"{folder}/tests/smoke.py, before and after")
    untouched(here, before)
    done = here.fix("--from-source", folder, "--yes", "--json").ends(0)
    test = done.json["test"]
    assert test["file"] == str(folder / "tests/smoke.py") and test["after"]["state"] == "passed", test
    assert test["before"]["state"] == "failed" and "No module named 'my_ext'" in test["before"]["why"], test
    assert test["after"]["lines"] == ["smoke says cuda"] and test["after"]["by"] == "python", test
    assert "smoke says cuda" in done.err, done
    again = here.fix("--from-source", folder, "--yes").ends(0)
    assert re.search(r"smoke.py passed \(python, [0-9.]+ s\); before the change it passed", again.out), again
    here.restore().ends(0), here.restore().ends(0)
    assert here.everything() == before


def test_smoke_test_that_fails(here, work):  # noqa: F811
    """Everything imports, and the maintainer's test fails: taken back, byte for byte. --test is put in its place."""
    folder = with_smoke_test(work / "src", "cpu")
    before = here.everything()
    result = here.fix("--from-source", folder, "--yes", "--json").ends(6, "AssertionError: another device than cpu").ends(6, "nothing was changed")
    assert re.search("before the change it failed .*No module named 'my_ext'", result.err), result
    test = result.json["test"]
    assert (test["before"]["state"], test["after"]["state"]) == ("failed", "failed"), test
    assert "smoke says cuda" in test["after"]["lines"], test
    assert here.everything() == before
    assert not list((here.env.folder / ".scankit/wheels").glob("*/*")), "the wheel of an attempt that failed is left"
    other = work / "another.py"
    other.write_text("import my_ext\n")
    here.fix("--from-source", folder, "--test", other, "--yes").ends(0, f"the test {other} passed")
    installed = here.everything()
    # A wheel of a release that passes its imports and fails the user's test, over one that works.
    other.write_text('import my_ext\nassert my_ext.version == "1.0", my_ext.version\n')
    second = wheel_of(sources(work / "second", "2.0"), work / "dist")
    here.fix("--wheel", second, "--test", other, "--yes").ends(6, "AssertionError: 2.0").ends(6, "before the change it passed")
    assert here.everything() == installed and here.runs(WORKS) == "1.0"


def test_smoke_test_of_a_wheel(here, work):  # noqa: F811
    """It is run from where the wheel was installed, after it was shown; one that fails takes the installation back."""
    folder = declaring(work / "src")
    (folder / "my_ext/smoke.py").write_text('print("as", __file__)\n' + SMOKE.replace("EXPECTED", "cuda"))
    built = wheel_of(folder, work / "dist")

    def wheel(name, member, smoke, declared="my_ext/smoke.py"):
        (work / name).mkdir()
        text = DECLARED + f"test: {{file: {declared}}}\n"
        one = packed(shutil.copy(built, work / name), "my_ext/scankit.module.yaml", text)
        return packed(one, member, smoke) if member else one

    before = here.everything()
    good = wheel("good", "my_ext/checks/smoke.py", 'print("as", __file__)\n' + SMOKE.replace("EXPECTED", "cuda"), "checks/smoke.py")
    plan = here.fix("--wheel", good, "--dry-run").ends(0, "my_ext/checks/smoke.py of the wheel, once it is installed")
    assert "is not in the wheel" not in plan.out, plan
    untouched(here, before)
    done = here.fix("--wheel", good, "--yes", "--json").ends(0)
    test = done.json["test"]
    installed = str(here.site / "my_ext/checks/smoke.py")
    assert test["file"] == installed and f"as {installed}" in test["after"]["lines"] and test["after"]["state"] == "passed", test
    assert test["before"]["state"] == "not_run" and test["before"]["why"] == "it comes with the wheel", test
    here.restore().ends(0)
    assert here.everything() == before
    bad = wheel("bad", "my_ext/checks/smoke.py", SMOKE.replace("EXPECTED", "cpu"), "checks/smoke.py")
    here.fix("--wheel", bad, "--yes").ends(6, "AssertionError: another device than cpu").ends(6, "nothing was changed")
    assert here.everything() == before
    # --test takes its place; and a file of the sources alone is told.
    other = work / "another.py"
    other.write_text("import sys\n")
    replaced = here.fix("--wheel", bad, "--test", other, "--dry-run").ends(0, f"{other}, before and after")
    assert "smoke.py" not in replaced.out, replaced
    here.fix("--wheel", wheel("without", "", "", "tests/smoke.py"), "--dry-run").ends(0, "its smoke test tests/smoke.py is not in the wheel")
    assert here.everything() == before


def test_interrupted_test(here, work):  # noqa: F811
    """Ctrl-C ends the test and what it has started, at once, and the change is undone."""
    wheel, test = wheel_of(sources(work / "src"), work / "dist"), work / "slow.py"
    before = here.everything()
    slow = f"""\
import pathlib, subprocess, sys, time
try:
    import my_ext
except ImportError:
    sys.exit() if {{when!r}} == "after" else None
daemon = subprocess.Popen(["sleep", "900"], start_new_session=True)
pathlib.Path({str(work / "begun")!r}).write_text(str(daemon.pid))
time.sleep(900)
"""
    for when in ("before", "after"):
        test.write_text(slow.replace("{when!r}", repr(when)))
        begun, progress = work / "begun", work / f"progress-{when}"
        begun.unlink(missing_ok=True)
        # Who started pytest may ignore SIGINT; env puts it back.
        fixer = here.scankit.with_(before=["env", "--default-signal=INT"]).start(
            "fix", "--python", here.python, "--wheel", wheel, "--test", test, "--yes", err=progress)
        while not (begun.exists() and begun.read_text()) and fixer.poll() is None:
            time.sleep(0.05)
        daemon = int(begun.read_text())
        fixer.send_signal(signal.SIGINT)
        assert fixer.wait(timeout=60) == 130, progress.read_text()
        assert "interrupted by signal 2" in progress.read_text() and "nothing was changed" in progress.read_text()
        assert not os.path.exists(f"/proc/{daemon}"), "what the test has started has not ended"
        assert here.everything() == before, when


@pytest.mark.ctest(labels="matrix;e2e")
def test_tests_that_are_refused(here, work):  # noqa: F811
    before = here.everything()
    wheel = wheel_of(sources(work / "src"), work / "dist")
    refused(here, 2, "No such file", "--wheel", wheel, "--test", work / "none.py")
    refused(here, 2, "it is not a Python file", "--wheel", wheel, "--test", work / "src")
    theirs = work / "theirs/smoke.py"
    theirs.parent.mkdir()
    theirs.write_text("")
    if os.getuid() == 0:
        os.chown(theirs, 12345, 12345)
        refused(here, 1, "would run code of user 12345 as root", "--wheel", wheel, "--test", theirs)
        os.chown(theirs, 0, 0), os.chown(theirs.parent, 12345, 12345)
        refused(here, 1, "would run code of user 12345 as root", "--wheel", wheel, "--test", theirs)
        os.chown(theirs.parent, 0, 0)
    untouched(here, before)
    # Nothing is broken: nothing is done, and the test is not run.
    theirs.write_text("raise RuntimeError('it was run')\n")
    idle = here.fix("--test", theirs, "--yes")
    assert f"to run it: scankit validate --python {here.python} --test {theirs}" in idle.out and "it was run" not in idle.err, idle


@pytest.mark.ctest(labels="matrix;e2e")
def test_validate(here, work):  # noqa: F811
    """`validate --test FILE`: one test in every format, by a script and by pytest."""
    here.fix("--wheel", wheel_of(sources(work / "src"), work / "dist"), "--yes").ends(0)
    test = work / "smoke.py"

    def validated(status, text, *words):
        test.write_text(text)
        return here.scankit("validate", "--python", here.python, "--test", test, *words).ends(status)

    good, bad = SMOKE.replace("EXPECTED", "cuda"), SMOKE.replace("EXPECTED", "cpu")
    done = validated(0, good)
    assert f"PASSED: the test {test}" in done.out and "smoke says cuda" in done.err, done
    told = validated(6, bad, "--json").json
    [case] = told["cases"]
    assert (told["verdict"], told["mode"], case["state"], case["seconds"] > 0) == ("failed", "test", "failed", True), told
    assert case["reasons"][0] == "AssertionError: another device than cpu" and "smoke says cuda" in case["reasons"], told
    assert told["python"]["torch"], told
    validated(6, bad, "--report", f"junit={work}/j.xml", "--report", f"markdown={work}/m.md")
    assert "another device than cpu" in (work / "j.xml").read_text() and "another device than cpu" in (work / "m.md").read_text()
    hung = validated(6, "import time\ntime.sleep(60)\n", "--timeout", "2", "--json").json
    assert hung["cases"][0]["state"] == "hung", hung
    crashed = validated(6, "import os\nos.abort()\n", "--json").json
    assert crashed["cases"][0]["state"] == "crashed", crashed
    # The environment has a real pytest; hidden by a package of its name, it cannot be imported.
    (here.site / "pytest").mkdir()
    (here.site / "pytest/__init__.py").write_text("raise ImportError('not here')\n")
    assert validated(4, "def test_it():\n    assert False\n", "--json").json["cases"][0]["state"] == "not_run"
    shutil.rmtree(here.site / "pytest")
    skips = "import pytest\n\n@pytest.mark.skip(reason='no GPU here')\ndef test_it():\n    assert False\n"
    skipped = validated(4, skips)
    assert "pytest ran no test in it: 1 skipped" in skipped.out, skipped
    failing = validated(6, skips + "\ndef test_other():\n    assert 1 == 2\n", "--json").json["cases"][0]
    assert failing["state"] == "failed", failing
    passing = validated(0, skips + "\ndef test_other():\n    print('called')\n")
    assert "run with pytest" in passing.out and "1 passed, 1 skipped" in passing.err, passing
