# SPDX-License-Identifier: Apache-2.0
"""What the program itself says of its command line, with its exit statuses."""
import json
import os
import pty
import re
import subprocess

import pytest

from fixtures import MACHINES, REPOSITORY

pytestmark = pytest.mark.ctest(group="manners")


@pytest.fixture(autouse=True)
def in_work(work, monkeypatch):
    """Every file of a test is in its own folder."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def run(scankit):
    """run(status, "env lock --help"): the result, which has that exit status."""
    return lambda status, words="", *more: scankit(*words.split(), *more).ends(status)


@pytest.fixture
def snapshot(work):
    """A recorded machine whose module was built for another torch."""
    facts = json.loads((MACHINES / "cpu_torch211/snapshot.json").read_text())
    facts["extensions"]["value"][0]["missing_symbols"] = [
        {"name": "_ZN3c104cuda9SetDeviceEi", "demangled": "c10::cuda::SetDevice(int)", "owner": "torch",
         "near": ["c10::cuda::SetDevice(signed char, bool)"]}]
    (work / "snapshot.json").write_text(json.dumps(facts))
    return work / "snapshot.json"


def test_help(run):
    result = run(0, "help")
    assert "Usage: scankit [OPTIONS] <COMMAND>" in result.out and not result.err, result
    assert run(0, "--help").out == result.out, "scankit help and --help differ"
    for asked in ("doctor", "env lock", "ci init", "fleet run", "help"):
        result = run(0, f"help {asked}")
        assert f"Usage: scankit {asked}" in result.out, result
        assert run(0, f"{asked} --help").out == result.out, f"scankit help {asked} and scankit {asked} --help differ"
    result = run(2, "help docter")
    assert "did you mean 'doctor'?" in result.err and not result.out, result


def test_version(run, scankit):
    result = run(0, "--version")
    assert run(0, "-V").out == result.out, "-V and --version differ"
    assert re.search(r"^scankit [0-9.]+.*$", result.out, re.MULTILINE), f"no version: {result!r}"
    facts = json.loads(run(0, "--version --json").out)
    assert run(0, "--json --version").out == run(0, "--version --json").out
    assert result.out == f"scankit {facts['tool_version']}\n"
    schema = json.loads((REPOSITORY / "doctor/report/schema/version-1.json").read_text())
    assert facts["$schema"] == schema["$id"] and facts.keys() == schema["properties"].keys()
    assert {"zlib", "re2", "glibc"} <= {one["name"] for one in facts["libraries"]}, facts
    git = lambda *words: subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True).stdout.strip()
    log = REPOSITORY / git("rev-parse", "--git-path", "logs/HEAD")
    if log.is_file() and scankit.path.stat().st_mtime < log.stat().st_mtime:  # a commit that nobody has built yet
        assert git("cat-file", "-t", facts["commit"]) == "commit", facts
    else:
        assert facts["commit"] == (git("rev-parse", "HEAD") or None), "not the commit that was built"
    result = run(2, "--json")
    assert "--version" in result.err, result


# What is promised of the program that is shipped, not of one with sanitizers. The processor's time: a busy machine makes others
# wait. The best of many, since the first run reads the file from the disk.
def test_size_and_start(scankit):
    program = scankit.path.read_bytes()
    if b"__asan_init" in program:
        pytest.skip("a build with sanitizers")
    assert len(program) <= 12_000_000, len(program)
    costs = []
    for _ in range(20):
        child = subprocess.Popen([scankit.path, "--version"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = status
        costs.append(used.ru_utime + used.ru_stime)
    assert status == 0 and min(costs) <= 0.010, costs


# As uv has it: the list is the answer, and it is no success.
def test_bare_group(run):
    result = run(2, "env")
    assert "  lock " in result.out and "  check " in result.out and not result.err, result
    assert "  init " in run(2, "ci").out
    assert "  report " in run(2, "fleet").out


def test_mistakes(run):
    for words, sentence in (
            ("docter", "scankit: unexpected argument 'docter'; did you mean 'doctor'? (see: scankit --help)"),
            ("doctor --pyton x", "scankit: unexpected argument '--pyton'; did you mean '--python'? (see: scankit doctor --help)"),
            ("env chekc", "did you mean 'check'? (see: scankit env --help)"),
            ("env diff a", "missing argument <B> (see: scankit env diff --help)"),
            ("doctor --from a --log b --all", "cannot be used together"),
            ("build --arch sm_90 --arch sm_80", "--arch was given 2 times and is accepted once"),
            ("doctor --report jsn=x", 'unknown report format "jsn"; did you mean json?')):
        result = run(2, words)
        assert sentence in result.err, result
    result = run(2, "fleet run --slurm --out x --")
    assert not result.out and len(result.err.splitlines()) == 1, f"more than a line: {result!r}"


def test_paths_of_the_user(run, snapshot):
    result = run(2, f"doctor --from {snapshot} --report html=/nonexistent/x.html")
    assert "scankit: cannot write /nonexistent/x.html: the directory /nonexistent does not exist" in result.err, result
    result = run(2, "ci init policy --out /proc/nonexistent")
    assert not re.search(r"XXXXXX|\.[A-Za-z0-9]{6}:", result.err), result


def test_explain(run):
    assert "torch_version_mismatch" in run(0, "explain").out
    assert "scankit explain torch_version_mismatch" in run(0, "explain", "undefined symbol").out
    assert "scankit explain torch_version_mismatch" in run(0, "explain undefined symbol").out
    result = run(0, "explain", "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory")
    assert result.out.startswith("missing_cudart:"), f"not the cause: {result!r}"
    result = run(2, "explain torch_version_mismach")
    assert "did you mean torch_version_mismatch?" in result.err and not result.out, result


def test_quiet(run, snapshot):
    result = run(1, f"doctor --from {snapshot} -q")
    assert len(result.out.splitlines()) == 2, f"not two lines: {result!r}"
    assert "(torch_version_mismatch)" in result.out and "scankit fix --python" in result.out, result
    assert "cannot be used together" in run(2, "doctor -q -v").err


def on_a_terminal(command, **variables):
    """What the command writes to a real terminal, as bytes."""
    seen = b""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        os.execve(command[0], command, {**environment, **variables})
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        seen += piece
    os.waitpid(pid, 0)
    os.close(terminal)
    return seen


# A screen that knows no colours, and a user who wants none, get none.
def test_colour(scankit, snapshot):
    command = [str(scankit.path), "doctor", "--from", str(snapshot)]
    seen = on_a_terminal(command, TERM="xterm")
    assert b"\033[1mtorch_version_mismatch\033[0m" in seen, f"the cause is not bold: {seen!r}"
    assert re.search(rb"^\033\[1mscankit fix --python", seen, re.MULTILINE), f"the command is not bold: {seen!r}"
    assert b"\033" not in on_a_terminal(command, TERM="xterm", NO_COLOR="1"), "NO_COLOR is not obeyed"
    assert b"\033" not in on_a_terminal(command, TERM="dumb"), "TERM=dumb gets escapes"
