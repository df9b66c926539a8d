# SPDX-License-Identifier: Apache-2.0
"""scankit.module.yaml: what a package declares about its modules, and what `fix --from-source` and `fix --wheel` do with it."""
import re
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
    other = packed(wheel_of(folder, work / "other"), "my_ext/scankit.module.yaml", DECLARED.replace("distribution: my-ext", "distribution: torch"))
    refused(here, 1, "describes torch, and the wheel is of my_ext", "--wheel", other)
    (folder / "my_ext/ops.py").write_text("")
    works = packed(wheel_of(folder, work / "works"), "my_ext/scankit.module.yaml", DECLARED)
    here.fix("--wheel", works, "--yes").ends(0)
    assert here.runs(WORKS) == "1.0"


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
