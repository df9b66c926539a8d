# SPDX-License-Identifier: Apache-2.0
"""Packages that were built from a source archive: what a lock says of the archive, the wheel and the compilers; and environments
made from it, by the packed wheel and by another build of the same archive, which differs by name or not at all."""
import os
import shutil
from pathlib import Path

import pytest

from creating import Create, left_behind, record_of
from fixtures import run, shell_or_skip, site_of
from project import sha256, text_of
from source_packages import build_tools, inside, native, serve

pytestmark = pytest.mark.ctest(group="envspec.sdists", labels="matrix;e2e", timeout=600)


@pytest.fixture
def tools():
    return build_tools()


@pytest.fixture
def schema_reader():
    """A Python with jsonschema. Before `project`, which has a home of its own."""
    return Path(shell_or_skip("fx_report_readers")) / "bin/python"


@pytest.fixture
def project(tools, bare_project, work):
    """With `native`, which somebody's pip has built from the archive of the index."""
    bare_project.archive = native(bare_project.index.served, work / "built")
    serve(bare_project.index, *tools.glob("setuptools-75.8.0-*.whl"))
    bare_project.make_environment("env")
    pip_install(bare_project, "native==1.0")
    (work / "built").unlink()
    return bare_project


def pip_install(project, *words):
    run(project.installers / "python", "-m", "pip", "--python", project.python, "install", "-q", *words)


def lock(project, **how):
    project.lock(**how).ends(0)
    return project.distribution("native")


def steps_of(result):
    return {step["what"]: step for step in result.json["proof"]}


def compiled(python):
    [file] = (site_of(os.path.abspath(python)) / "native").glob("_c*.so")
    return file


@pytest.mark.ctest(labels="ci;e2e")
def test_what_is_known(schema_reader, project, work):
    """Of pip's own build: the archive, the wheel in its cache, the compilers. Nothing is built for it."""
    one = lock(project)
    build = one["build"]
    assert one["source"] == "here" and one["artifact"]["file"].endswith(".whl"), one
    assert build["sdist"]["sha256"] == sha256(project.archive) and build["sdist_from"] == "pip_cache", build
    assert build["sdist"]["url"].startswith(project.index.server.url) and build["why_no_sdist"] == "", build
    [wheel] = Path(os.environ["PIP_CACHE_DIR"]).rglob("native-1.0-*.whl")
    assert build["wheel"] == {"file": wheel.name, "sha256": sha256(wheel), "size": wheel.stat().st_size, "url": ""}, build
    by = build["toolchain"]
    assert by["generator"] == "setuptools (75.8.0)" and any("GCC" in name or "clang" in name for name in by["compilers"]), by
    assert by["cuda"] == by["code"] == by["torch"] == [], by
    assert by["why_no_cuda"] == "it contains no device code" and by["why_no_torch"] == "its compiled files use no symbol of torch", by
    so = compiled(project.python)
    assert build["files"][f"native/{so.name}"] == sha256(so) and "native/__init__.py" in build["files"], build["files"]
    assert not (work / "built").exists(), "it was built to be locked"
    # The published schema, by a program that is not ours.
    schema = Path(__file__).resolve().parents[1] / "schema/lock-1.json"
    run(schema_reader, "-c", "import json, jsonschema, sys; jsonschema.validate(*(json.load(open(name)) for name in sys.argv[1:]))", "scankit.lock",
        schema)
    # A second lock asks nobody, and still knows.
    assert lock(project) == one


def test_what_nobody_noted(project):
    """Without pip's cache only the index has such an archive; and where there is no index, nothing is known of one."""
    shutil.rmtree(os.environ["PIP_CACHE_DIR"])
    build = lock(project)["build"]
    assert (build["sdist"]["sha256"], build["sdist_from"]) == (sha256(project.archive), "index"), build
    assert build["sdist"]["url"].startswith(project.index.server.url), "uv is not asked where it is"
    assert build["wheel"] is None and "kept no copy" in build["why_no_wheel"], build
    Path("scankit.lock").unlink()
    project.lock("--offline").ends(0)
    one = project.distribution("native")
    assert one["artifact"] is None and one["why_no_artifact"] == "the index was not queried" and "build" not in one, one


def test_locked_again_over_an_older_lock(project):
    """Another build of the version: its archive is that of the older lock, as long as that is of the same version. No index is asked."""
    first = lock(project)
    shutil.rmtree(os.environ["PIP_CACHE_DIR"])
    assert Create(project)("new").status in (0, 4)
    before = text_of("scankit.lock")
    project.env("lock", "--python", "new/bin/python", "--offline").ends(0)
    one = project.distribution("native")
    assert one["artifact"]["sha256"] != first["artifact"]["sha256"], "the builds are the same, so that the test shows nothing"
    assert (one["build"]["sdist"], one["build"]["sdist_from"]) == (first["build"]["sdist"], "older_lock"), one
    Path("scankit.lock").write_text(before.replace(first["build"]["sdist"]["sha256"], "0" * 64))
    project.env("lock", "--python", "new/bin/python", "--offline").ends(0, "nothing is reused from the old lock")
    assert "build" not in project.distribution("native"), "an edited lock is believed"
    Path("scankit.lock").write_text(before)
    assert Create(project)("again").status in (0, 4)


def test_place_for_builds(project, work):
    """A directory whose name no build can take is refused before anything is installed, also by the name of a link."""
    lock(project)
    place, link = work / "with a space", work / "link"
    place.mkdir()
    link.symlink_to(place)
    for folder in (place, link):
        Create(project)(folder / "new").ends(2, "with a space has a character that builds cannot take")
        assert not any(place.iterdir())


def test_from_a_file(project):
    """pip records the hash of an archive that it is given; of a directory there is none."""
    project.uninstall("native")
    pip_install(project, "--no-cache-dir", project.archive)
    build = lock(project)["build"]
    assert (build["sdist"]["file"], build["sdist"]["sha256"], build["sdist_from"]) == \
        (project.archive.name, sha256(project.archive), "direct_url"), build
    project.uninstall("native")
    pip_install(project, "--no-cache-dir", project.archive.parents[1] / "make/native-1.0")
    Path("scankit.lock").unlink()
    build = lock(project)["build"]
    assert build["sdist"] is None and build["why_no_sdist"] == "it was built from a local directory", build


@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.ctest(labels="ci;e2e")
def test_made_again(project, installer, work):
    """By the packed wheel: the same bytes, and no build. By the archive alone: a build, whose differences are named; two builds in
    two directories are the same."""
    lock(project)
    project.export("requirements", "requirements.txt").ends(0)
    create, uv = Create(project), installer == "uv"
    result = create("new-wheel", "--json", uv=uv).ends(0)
    assert "build native" not in steps_of(result) and not (work / "built").exists(), "built although its wheel is here"
    assert sha256(compiled("new-wheel/bin/python")) == sha256(compiled(project.python))

    shutil.rmtree("scankit-wheels")
    signatures = []
    for name in ("new-one", "new-elsewhere"):
        result = create(name, "--json", uv=uv)
        step = steps_of(result)["build native"]
        so = compiled(f"{name}/bin/python")
        print(step)
        if sha256(so) == sha256(compiled(project.python)):
            assert step["state"] == "passed" and result.status == 0, result
        else:
            assert step["state"] == "not_verified" and result.status == 4, result
            assert step["detail"] == \
                f"1 of {len(project.distribution('native')['build']['files'])} files differs from the lock: native/{so.name} " \
                "(different content, but the same dependencies)", step
        assert run(f"{name}/bin/python", "-c", "import native; print(native.answer())") == "42\n"
        signatures.append(record_of(name)["signature"])
        project.env("check", "--record", name).ends(0)
    assert (work / "built").exists() and signatures[0] == signatures[1], "two builds differ"


def test_without_isolation(project):
    """A build that imports a package of the environment, and finds its tools without leaving them there."""
    archive = inside(project.index.served)
    serve(project.index)
    project.install("alpha==1.0", "setuptools==75.8.0")
    project.install("--no-deps", "--no-build-isolation", "--no-cache", "inside==1.0")
    project.uninstall("setuptools", "native")
    project.lock().ends(0)
    assert project.distribution("inside")["build"]["sdist"]["sha256"] == sha256(archive)
    create = Create(project)
    for name, uv in (("new-uv", True), ("new-pip", False)):
        assert create(name, uv=uv).status in (0, 4)
        assert run(f"{name}/bin/python", "-c", "import inside; print(inside.answer())") == "42\n"
        assert set(record_of(name)["content"]) == {"alpha", "inside"}
    assert record_of("new-uv")["signature"] == record_of("new-pip")["signature"]


def test_refused_before_it_runs(project, work):
    """An archive with another hash is not unpacked, wherever it comes from, and nothing is left."""
    lock(project)
    create = Create(project)
    with open(project.archive, "ab") as file:
        file.write(b"x")  # the index serves it from now on
    create("new").ends(5, "native==1.0 cannot be built again from native-1.0.tar.gz: ")
    assert not (work / "built").exists() and not left_behind(), left_behind()


def test_offline(project, tools, work):
    """With a directory alone: the archive and what its build needs are there, or it is refused by name."""
    lock(project)
    project.index.stop()
    create = Create(project)
    os.mkdir("wheels")
    result = create("new", "--offline", "wheels").ends(2, "native==1.0, which was built locally: ")
    result.ends(2, "its source archive native-1.0.tar.gz is not there either")
    shutil.copy(project.archive, "wheels")
    create("new", "--offline", "wheels").ends(5, "native==1.0 cannot be built again from native-1.0.tar.gz")
    shutil.copy(next(tools.glob("setuptools-75.8.0-*.whl")), "wheels")
    for name, uv in (("new-uv", True), ("new-pip", False)):
        assert create(name, "--offline", "wheels", uv=uv).status in (0, 4)
    assert record_of("new-uv")["signature"] == record_of("new-pip")["signature"]
