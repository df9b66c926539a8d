# SPDX-License-Identifier: Apache-2.0
"""`env check --since`: real installers, real commits, and what neither of them records."""
import os
import shutil
import time
from pathlib import Path

import pytest

from fixtures import need_root, run
from lock_wheels import wheel
from project import text_of

pytestmark = pytest.mark.ctest(group="envspec.history", labels="ci;e2e", timeout=600)

DAY = 86400


@pytest.fixture
def aged(create):
    """The project's environment, lock and files, as if made ten days ago."""
    then = time.time() - 10 * DAY
    for path in [*create.project.python.parents[1].rglob("*"), Path("scankit.lock"), Path("good.lock")]:
        if not path.is_symlink():
            os.utime(path, (then, then))
    return create.project


def since(project, what, *words):
    return project.env("check", "--since", what, "--python", project.python, "--json", *words)


def events(result, source):
    return [event for event in result.json["events"] if event["source"] == source]


def serve_more(project):
    """alpha 1.1, which the index gets later."""
    wheel(project.index.served, "tool", "1.1", "py3-none-any", {"tool.py": b"def hello():\n    print('hi')\n"})
    project.index.stop()
    project.index.serve()


def git(*words):
    return run("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false", *words)


def test_installers(aged):
    """Who installed what and when, and that no command line is recorded."""
    since(aged, "7d").ends(0)
    serve_more(aged)
    aged.install("tool==1.1")
    result = since(aged, "7d").ends(7)
    [event] = events(result, "uv")
    assert event["text"] == "uv installed tool 1.1" and event["command"] is None, event
    assert event["recorded_in"].endswith("tool-1.1.dist-info/RECORD"), event
    assert any("no command line" in line for line in result.json["not_recorded"]), result.json
    assert any("what was removed is not recorded" in line for line in result.json["not_recorded"]), result.json
    # Of a file, what it says is compared: the version from before is known, and the removal of beta is not explained.
    aged.uninstall("beta")
    result = since(aged, "scankit.lock").ends(7)
    [event] = events(result, "uv")
    assert event["changes"] == [{"field": "packages.tool", "before": "1.0", "after": "1.1"}], event
    unexplained = {one["field"]: one["why"] for one in result.json["unexplained"]}
    assert unexplained["packages.beta"] == "it was removed, and pip and uv do not record removals", unexplained
    assert set(unexplained) == {"packages.beta", "files.beta/_c.abi3.so"}, unexplained
    text = aged.env("check", "--since", "scankit.lock", "--python", aged.python).ends(7, "packages.tool 1.0 -> 1.1")
    text.ends(7, "not recorded: packages.beta 2.0 -> none: it was removed")


def test_pip_says_what_was_requested(bare_project):
    """pip marks what its command line named."""
    project = bare_project
    project.make_environment("env", pip=True)
    wheel(project.index.served, "needs", "1.0", "py3-none-any", {"needs.py": b""}, requires=["tool"])
    wheel(project.index.served, "tool", "1.0", "py3-none-any", {"tool.py": b""})
    project.index.stop()
    project.index.serve()
    time.sleep(12)  # pip itself was installed by ensurepip, which is another run
    project.pip("install", "needs")
    texts = [event["text"] for event in events(since(project, "1h").ends(7), "pip")]
    assert "pip installed needs 1.0, tool 1.0; requested: needs" in texts, texts


def test_file_that_nothing_explains(aged):
    """A library that was written after its package was installed: the time is told, and that its writer is not recorded."""
    library = aged.site / "beta/_c.abi3.so"
    library.write_bytes(library.read_bytes() + b"x")
    stray = aged.site / "stray.abi3.so"
    shutil.copy(library, stray)
    result = since(aged, "7d").ends(7)
    texts = sorted(event["text"] for event in events(result, "file"))
    assert len(texts) == 2 and texts[0].startswith("beta/_c.abi3.so was written after beta 2.0 was installed ("), texts
    assert texts[0].endswith("); by what is not recorded") and texts[1].startswith("stray.abi3.so was written, which no"), texts
    # The lock has the hash: it is the same event, with both hashes.
    changed = [event for event in events(since(aged, "scankit.lock").ends(7), "file") if event["recorded_in"] == "beta/_c.abi3.so"]
    assert changed[0]["changes"][0]["before"] != changed[0]["changes"][0]["after"] != None, changed  # noqa: E711


def test_commits(aged):
    """The commit that changed the lock is named with what it changed; the rest of the history is not."""
    git("init", "-q", ".")
    git("add", "scankit.lock")
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 9 * DAY))
    os.environ["GIT_COMMITTER_DATE"] = os.environ["GIT_AUTHOR_DATE"] = then
    try:
        git("commit", "-q", "-m", "Pin what works")
    finally:
        del os.environ["GIT_COMMITTER_DATE"], os.environ["GIT_AUTHOR_DATE"]
    since(aged, "7d").ends(0)
    serve_more(aged)
    aged.install("tool==1.1")
    aged.lock().ends(0)
    [event] = [one for one in events(since(aged, "7d"), "file") if one["recorded_in"] == "scankit.lock"]
    assert event["text"] == "scankit.lock was written, and the change is not committed", event
    git("commit", "-q", "-a", "-m", "Update tool")
    result = since(aged, "7d").ends(7)
    [event] = events(result, "git")
    assert event["commit"] == git("rev-parse", "HEAD").strip() and '"Update tool" changed scankit.lock' in event["text"], event
    assert event["changes"] == [{"field": "packages.tool", "before": "1.0", "after": "1.1"}], event
    assert not [one for one in events(result, "file") if one["recorded_in"] == "scankit.lock"], result.json
    # The time of an unchanged file is that of its commit, not that of its checkout.
    os.utime("scankit.lock")
    assert since(aged, "scankit.lock").json["since"]["commit"] == event["commit"]


def test_own_repairs(aged):
    """`env sync` is recorded with its command, and `env create` with the lock that it was made from."""
    serve_more(aged)
    aged.install("tool==1.1")
    aged.env("sync", "--python", aged.python, "--lock", "good.lock", variables={"PATH": f"{aged.installers}:/usr/bin:/bin"}).ends(0)
    result = since(aged, "7d").ends(7)
    [synced] = [event for event in events(result, "scankit") if "/journal/" in event["recorded_in"]]
    assert "tool" in (synced["command"] or "") or "install" in (synced["command"] or ""), synced
    [made] = [event for event in events(result, "scankit") if event["recorded_in"].endswith("record.json")]
    assert "from the lock " in made["text"], made


def test_bad_input(aged):
    for bad in ("yesterday", "2026-02-30", "/", "no-such-file"):
        since(aged, bad).ends(2, "is neither a date, an age nor a file")
    since(aged, "2999-01-01").ends(2, "is in the future")
    Path("broken.lock").write_text(text_of("scankit.lock")[:200])
    since(aged, "broken.lock").ends(2, "broken.lock")
    aged.env("check", "--since", "7d", "--redact", "--python", aged.python).ends(2, "without --redact")
    # A file in no repository has no commits, and what git refuses to tell is not "nothing changed".
    since(aged, "7d").ends(0)
    need_root("giving a repository to another user")
    git("init", "-q", ".")
    os.chown(".", 12345, 12345), os.chown(".git", 12345, 12345)
    assert "git rev-parse failed" in since(aged, "7d").ends(4).json["unknown"][0]
