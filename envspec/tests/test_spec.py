# SPDX-License-Identifier: Apache-2.0
"""A spec of a real environment, and what `env check` says after real changes to it. The environment is a venv that sees the
torch of another one through a .pth file; its selective_scan_cuda is the one of the build tree."""
import json
import os
import re
import shutil
import xml.dom.minidom
from pathlib import Path

import pytest

from fixtures import run, python_with_torch, torch_of
from program import run_program
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.spec", labels="ci;e2e", timeout=300, fixtures="torch_env")


@pytest.fixture
def env(scankit, environment, build, work, monkeypatch):
    """The environment; the current directory is a project's, with no spec yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(work / "cache"))
    env = environment("tested")
    env.module = env.site / "selective_scan_cuda.abi3.so"
    env.built = build / "modules/selective_scan_cuda.abi3.so"
    shutil.copy(env.built, env.module)
    (work / "project").mkdir()
    monkeypatch.chdir(work / "project")
    env.init = lambda *words: scankit("env", "init", "--python", env.python, *words)
    env.check = lambda *words: scankit("env", "check", "--python", env.python, *words)
    return env


@pytest.fixture
def described(env):
    """With its spec."""
    env.init().ends(0)
    return env


@pytest.fixture
def drifts(described):
    """drifts(CAUSE, OPTION...): the check fails, with that root cause."""
    def drifts(cause, *words):
        result = described.check("--json", *words).ends(7)
        assert result.root == cause, result.summary
        return result
    return drifts


@pytest.fixture
def stored(scankit, described):
    """machine.json: a snapshot of the environment."""
    scankit("snapshot", "--python", described.python, "--out", "machine.json").ends(0)
    return text_of("machine.json")


def changed(*lines):
    """changed.yaml: the spec with these lines in place of the table that the first of them opens."""
    key = lines[0].partition(":")[0]
    rest = re.sub(rf"(?m)^{key}:.*\n(?: .*\n)*", "", text_of("scankit.yaml"))
    Path("changed.yaml").write_text(rest + "\n".join(lines) + "\n")


def test_init(env, scankit):
    env.check().ends(2, "scankit env init")
    env.init().ends(0)
    spec = text_of("scankit.yaml")
    assert "# yaml-language-server: $schema=scankit.schema.json" in spec.splitlines()
    assert scankit("env", "schema").out == text_of("scankit.schema.json")
    assert re.search(r"(?m)^  selective_scan_cuda:", spec), spec
    env.check().ends(0)
    env.init().ends(2, "already exists,")
    assert text_of("scankit.yaml") == spec, "it was written over"
    env.init("--force").ends(0)
    assert text_of("scankit.yaml") == spec, "the same environment gives other bytes"
    env.init("--out", "none/s.yaml").ends(2)
    assert sorted(os.listdir()) == ["scankit.schema.json", "scankit.yaml"], "half a file is left"


def test_snapshot(described, scankit, stored):
    scankit("env", "check", "--from", "machine.json").ends(0)
    of_snapshot = scankit("env", "init", "--from", "machine.json", "--out", "-").ends(0)
    assert of_snapshot.out == text_of("scankit.yaml").partition("\n")[2]
    Path("unread.json").write_text(stored.replace('"state": "present"', '"state": "failed"'))
    scankit("env", "check", "--from", "unread.json").ends(4)
    Path("newer.json").write_text(stored.replace('"schema": 1', '"schema": 99'))
    scankit("env", "check", "--from", "newer.json").ends(2)


def test_module(described, drifts):
    described.module.unlink()
    drifts("drift_extension_missing").ends(7, "scankit fix")
    described.module.write_text("<!DOCTYPE html>\n")
    drifts("drift_extension")
    shutil.copy(described.built, described.module)
    described.check().ends(0)


def test_torch(described, drifts):
    """The files of the real one, with another release in its version file, come first on the path."""
    torch = described.site / "torch"
    torch.mkdir()
    for entry in torch_of(python_with_torch()).iterdir():
        (torch / entry.name).symlink_to(entry)
    (torch / "version.py").unlink()
    (torch / "version.py").write_text("__version__ = '2.99.1+cu126'\ndebug = False\ncuda = '12.6'\ngit_version = 'x'\nhip = None\n")
    result = drifts("drift_torch")
    assert result.out.count('"because_of": "drift_torch"') == 1, f"its CUDA does not follow from it: {result!r}"
    result.ends(7, '"file": "scankit.yaml"')


@pytest.fixture
def image(env, work):
    """This environment and the Python below it, as files alone."""
    root = work / "root"
    interpreter = os.path.realpath(env.python)
    os_module = os.path.realpath(run(env.python, "-c", "import os; print(os.__file__)").strip())
    for path in (os_module, interpreter):
        Path(f"{root}{path}").parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, f"{root}{path}")
    (root / "etc").mkdir()
    shutil.copytree(env.folder, f"{root}{env.folder}", symlinks=True)
    yield root
    shutil.rmtree(root)


def test_image(env, image):
    Path("image.yaml").write_text("schema: 1\nextensions:\n  selective_scan_cuda: {python_tag: abi3}\n")
    env.check("--root", image, "--spec", "image.yaml").ends(0)
    os.unlink(f"{image}{env.module}")
    env.check("--root", image, "--spec", "image.yaml").ends(7)


def test_fields(described, drifts):
    for lines, cause in ((["gpus: [sm_52]"], "drift_gpu"),
                         (["python:", '  version: "3.8.*"'], "drift_python"),
                         (["host_compiler:", "  kind: gcc", '  version: ">=99"'], "drift_compiler"),
                         (["extensions:", "  selective_scan_cuda:", "    torch_abi: full"], "drift_extension")):
        changed(*lines)
        drifts(cause, "--spec", "changed.yaml")
    described.check("--spec", "changed.yaml", "--fail-on", "never").ends(0)
    forms = ("junit=j.xml", "sarif=s.json", "markdown=m.md", "html=h.html", "github=g.txt")
    reports = [word for form in forms for word in ("--report", form)]
    described.check("--spec", "changed.yaml", *reports).ends(7)
    xml.dom.minidom.parse("j.xml")
    json.loads(text_of("s.json"))


def test_diff(described, scankit, stored):
    def differ(status, *words):
        return scankit("env", "diff", *words).ends(status)

    changed("extensions:", "  selective_scan_cuda:", "    torch_abi: full")
    Path("unread.json").write_text(stored.replace('"state": "present"', '"state": "failed"'))
    differ(0, "scankit.yaml", described.folder)
    differ(0, described.python, "machine.json")
    differ(0, "machine.json", "scankit.yaml")
    differ(7, "scankit.yaml", "changed.yaml").ends(7, "extensions.selective_scan_cuda.torch_abi")
    differ(7, "--json", "machine.json", python_with_torch()).ends(7, '"field": "extensions.selective_scan_cuda"')
    differ(4, "unread.json", "scankit.yaml")
    differ(2, "scankit.yaml", "none.yaml")


def test_spec_of_a_stranger(described, work):
    """It is data."""
    def check(text):
        Path("evil.yaml").write_text(text)
        return described.check("--spec", "evil.yaml")

    check(f'schema: 1\ndriver: "$(touch {work}/run)"\n').ends(2)
    assert not (work / "run").exists()
    check("schema: 1\ninclude: /etc/passwd\n").ends(2, 'evil.yaml:2:1: unknown field "include"')
    check("schema: 1\ntocrh: {}\n").ends(2, 'did you mean "torch"?')
    check("schema: 1\n").ends(4)  # it demands nothing, which proves nothing
    Path("endless.yaml").symlink_to("/dev/zero")
    described.check("--spec", "endless.yaml").ends(2)
    described.check("--spec", ".").ends(2)


def test_nothing_of_a_spec_is_run(env, scankit):
    if not shutil.which("strace") or run_program("strace", "-o", "/dev/null", "true").status:
        pytest.skip("no strace that may trace here")
    Path("evil.yaml").write_text('schema: 1\npython: {version: "3.*"}\nextensions:\n  os.system: {distribution: touch}\n')
    traced = scankit.with_(before=["strace", "-f", "-e", "trace=execve,execveat", "-o", "trace"])
    traced("env", "check", "--python", env.python, "--spec", "evil.yaml")
    # The doctor asks the C++ compiler of the machine for its version, whatever the spec says.
    started = [line for line in text_of("trace").splitlines() if "execve" in line and "-dumpfullversion" not in line]
    assert len(started) == 1, started


def test_build_for_a_spec(described, scankit):
    """The machine of a spec, for build."""
    def listed(spec):
        return scankit("build", "--python", described.python, "--for", spec, "--list-toolchains")

    changed("gpus: [sm_90]")
    listed("changed.yaml").ends(0)
    Path("empty.yaml").write_text("schema: 1\n")
    listed("empty.yaml").ends(2)
    Path("evil.yaml").write_text("schema: 1\ntocrh: {}\n")
    listed("evil.yaml").ends(2)
