# SPDX-License-Identifier: Apache-2.0
"""`from: source` in a spec, without torch: the archive is built, though the index has a wheel too, by uv and by pip."""
import os
from pathlib import Path

import pytest

from creating import Create
from fixtures import run
from lock_wheels import wheel
from project import sha256
from source_packages import build_tools, native, serve

pytestmark = pytest.mark.ctest(group="envspec.create", labels="ci;e2e", timeout=600)


@pytest.fixture
def tools():
    return build_tools()


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_spec_source(tools, bare_project, work, installer):
    project, uv = bare_project, installer == "uv"
    archive = native(project.index.served, work / "built")
    wheel(project.index.served, "native", "1.0", "py3-none-any", {"native/__init__.py": b"def answer():\n    return 0\n"})
    serve(project.index, *tools.glob("setuptools-75.8.0-*.whl"))
    Path("scankit.yaml").write_text("schema: 1\nextensions:\n  native._c: {from: source, distribution: native}\n")
    result = Create(project)("new", "--spec", "scankit.yaml", "--json", uv=uv)
    assert result.status in (0, 4) and result.json["installer"] == installer, result
    assert (work / "built").exists() and run("new/bin/python", "-c", "import native; print(native.answer())") == "42\n"
    one = project.distribution("native")
    assert one["source"] == "here" and one["build"]["sdist"]["sha256"] == sha256(archive), one
    # The lock that it wrote makes the same environment again, from the archive.
    (work / "built").unlink()
    again = Create(project)("new-again", "--lock", "scankit.lock", "--json", uv=uv)
    assert again.status in (0, 4) and (work / "built").exists(), again
    assert run("new-again/bin/python", "-c", "import native; print(native.answer())") == "42\n"
    assert os.path.exists("new-again/.scankit/record.json")
