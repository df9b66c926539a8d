# SPDX-License-Identifier: Apache-2.0
"""`scankit run` with the commands that people type: installers, builds, test runners, schedulers, containers, shells. test_run.py
has its streams and signals."""
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from environment import module_text
from fixtures import REPOSITORY, need_root, shell_or_skip
from program import Result

pytestmark = pytest.mark.ctest(group="run_commands", labels="matrix;e2e", timeout=300)

NO_FAULT = "nothing in its output points to the installation"
SYMBOL = "_ZN3c104cuda9SetDeviceEi"  # torch 2.1 and 2.2 export it
UNDEFINED = f"ImportError: /x/flash_attn_2_cuda.so: undefined symbol: {SYMBOL}"
IMPORT = "import torch, selective_scan_cuda\n"
CRASHING = ("#include <Python.h>\n#include <unistd.h>\n"
            "PyMODINIT_FUNC PyInit_crashing_cuda(void) { usleep(600000); *(volatile int *)0 = 1; return 0; }\n")


@pytest.fixture
def run(scankit, work):
    """run("sh", "-c", "exit 3"): the Result of `scankit run --no-import -- sh -c "exit 3"`."""
    return lambda *words, **how: scankit("run", "--no-import", "--json", work / "report.json", "--", *words, **how)


@pytest.fixture
def broken(environment):
    """An environment with torch, whose selective_scan_cuda needs a symbol of an older one."""
    env = environment("tested")
    env.plain_module(env.module_file, text=f"{module_text()}\nint {SYMBOL}(int); int ask(void); int ask(void) {{ return {SYMBOL}(0); }}\n")
    return env


def is_diagnosed(result, python):
    """The module of that interpreter is the root cause, and the last line repairs it."""
    assert result.status != 0 and "torch_version_mismatch" in result.err, result
    assert f"scankit fix --python {python.parent}/python" in result.err.splitlines()[-1], result


def report():
    return json.loads(Path("report.json").read_text())


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


# The command in the report -------------------------------------------------------------------------------------------------


def test_report_has_the_command(run, broken, work):
    (work / "train.py").write_text(IMPORT)
    run(broken.python, "train.py", "--lr", "0.1").ends(1)
    command = report()["command"]
    assert command["argv"] == [str(broken.python), "train.py", "--lr", "0.1"] and command["directory"] == str(work)
    assert (command["exit_status"], command["signal"], command["end"]) == (1, None, "the command exited with status 1")
    assert command["examined"] == str(broken.python) == command["interpreters"][0]["python"]
    assert command["at"] == {"importing": True, "module": "selective_scan_cuda", "file": f"{work}/train.py", "line": 1,
                             "function": "<module>", "source": IMPORT.strip()}
    assert command["duration_ms"] > 0 and command["output"]["bytes"] > 100 and not command["output"]["cut"], command
    assert command["programs"], command


def test_report_of_a_signal_and_of_long_output(run, work):
    run("sh", "-c", "yes | head -c 1000000; kill -9 $$")
    command = report()["command"]
    assert command["exit_status"] is None and (command["signal"], command["signal_name"]) == (9, "SIGKILL"), command
    assert command["output"] == {"bytes": 1000000, "cut": True}, command
    run("sh", "-c", "exit 139")
    command = report()["command"]
    assert (command["exit_status"], command["signal_name"], command["at"]) == (139, "SIGSEGV", None), command


def test_report_is_redacted(scankit, work):
    result = scankit("run", "--redact", "--json", "r.json", "--report", "html=r.html", "--", sys.executable, "-c",
                     "raise ValueError('/home/annika/data')", "--hf-token", "hf_abcdefghijklmnopqrstuvwxyz012345", "--password", "hunter2",
                     "--data", "/home/annika/data")
    assert result.status == 1
    text = (work / "r.json").read_text() + (work / "r.html").read_text()
    assert "annika" not in text and "hunter2" not in text and "hf_abc" not in text, text
    assert json.loads((work / "r.json").read_text())["command"]["argv"][-1] == "/home/user/data"


# Python below other programs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["env", "nohup", "timeout", "pipe", "exec", "su", "sudo", "prlimit", "ninja", "nested"])
def test_python_below(run, scankit, broken, work, how):
    (work / "train.py").write_text(IMPORT)
    python = broken.python
    if how in ("su", "sudo"):
        need_root("become another user without a password")
    if how == "ninja":
        (work / "build.ninja").write_text(f"rule r\n command = {python} train.py\nbuild x: r\n")
    words = {"env": ["env", "-i", python, "train.py"], "nohup": ["nohup", python, "train.py"], "timeout": ["timeout", "250", python, "train.py"],
             "pipe": ["bash", "-o", "pipefail", "-c", f"{python} train.py 2>&1 | tail -n 20"], "exec": ["sh", "-c", f"exec {python} train.py"],
             "su": ["su", "-c", f"{python} train.py"], "sudo": ["sudo", python, "train.py"], "prlimit": ["prlimit", "--core=0", python, "train.py"],
             "ninja": ["ninja"], "nested": [scankit.path, "run", "--no-import", "--", python, "train.py"]}[how]
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} not found")
    result = run(*words)
    is_diagnosed(result, python)
    assert result.err.count("torch_version_mismatch:") == 1, f"explained twice: {result!r}"


def test_scankit_below_make_explains_once(run, scankit, work):
    (work / "Makefile").write_text(f"all:\n\t{scankit.path} run -- sh -c 'exit 3'\n")
    result = run("make")
    assert result.status == 2 and result.err.count("scankit: ") == 1 and "status 3" in result.err, result
    assert not run(scankit.path, "explain", "-q", "no_such_cause").err.count("the command"), "scankit's own errors are explained"
    # What fails later is a new failure.
    later = run("sh", "-c", f"{scankit.path} run -- sh -c 'exit 3'; {sys.executable} -c 'raise ValueError(1)'")
    assert later.status == 1 and later.err.splitlines()[-1].endswith(f"status 1; {NO_FAULT}"), later


@pytest.mark.parametrize("how", ["uv_run", "uv_pip"])
def test_uv(run, broken, work, how):
    uv = Path(shell_or_skip("fx_installers")) / "bin/uv"
    (work / "train.py").write_text(IMPORT)
    (work / "package").mkdir()
    (work / "package/setup.py").write_text(f"from setuptools import setup\n{IMPORT}setup(name='package')\n")
    if how == "uv_run":
        words = ["run", "--no-project", "--offline", "--python", broken.python, "train.py"]
    else:
        if subprocess.run([broken.python, "-c", "import setuptools.build_meta"], capture_output=True).returncode:
            pytest.skip("no setuptools in the environment with torch")
        words = ["pip", "install", "--offline", "--python", broken.python, "--no-build-isolation", "--no-deps", "./package"]
    result = run(uv, *words)
    assert result.status != 0 and "torch_version_mismatch" in result.err, result
    assert f"scankit fix --python {broken.folder}/bin/python" in result.err.splitlines()[-1], result


def test_torch_is_not_installed(run, environment, work):
    """By a program it is a missing package, whose command is the last line; only a build has an isolated environment."""
    env = environment("bare")
    (work / "train.py").write_text("import torch\n")
    result = run(env.python, "train.py").ends(1, "missing_python_dependency")
    assert "torch_missing_at_build" not in result.err and result.err.splitlines()[-1].endswith("install torch"), result
    assert report()["command"]["at"]["module"] == "torch"


def test_pytest(run, broken, work):
    """A test whose import fails, when it is collected and when it runs."""
    if subprocess.run([broken.python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("no pytest in the environment with torch")
    for name, text in (("test_collected.py", f"{IMPORT}def test_a(): pass\n"), ("test_running.py", f"def test_a():\n    {IMPORT}")):
        (work / name).write_text(text)
        is_diagnosed(run(broken.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", name), broken.python)


def test_pytest_that_crashes(scankit, environment, work):
    """faulthandler's dump tells where; the process of a worker of xdist is known from its parent's death only."""
    env = environment("tested")
    env.plain_module(env.site / f"crashing_cuda{env.suffix}", text=CRASHING)
    if subprocess.run([env.python, "-c", "import pytest"], capture_output=True).returncode:
        pytest.skip("no pytest in the environment with torch")
    (work / "test_crash.py").write_text("def test_a():\n    import crashing_cuda\n")
    options = [[]]
    if subprocess.run([env.python, "-c", "import xdist"], capture_output=True).returncode == 0:
        options.append(["-n1"])
    for option in options:
        result = scankit("run", "--json", "report.json", "--", env.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *option, "test_crash.py")
        assert result.status != 0 and "import_crash" in result.err and "crashing_cuda" in result.err, result
        at = report()["command"]["at"]
        assert at["importing"] and at["file"].endswith("test_crash.py") and at["function"] == "test_a", at


def test_environment_that_changes(run, environment):
    """The command mends the module that it could not import: what is there now has no fault, and is not blamed."""
    env = environment("tested")
    good = env.folder / "good.so"
    env.plain_module(good, text=module_text())
    env.plain_module(env.module_file, text=f"{module_text()}\nint {SYMBOL}(int); int ask(void); int ask(void) {{ return {SYMBOL}(0); }}\n")
    code = f"import os\ntry:\n    import torch, selective_scan_cuda\nfinally:\n    os.replace({str(good)!r}, {str(env.module_file)!r})\n"
    result = run(env.python, "-c", code).ends(1)
    assert "it needs 1 symbol" not in result.err and "line 3 of the log" in result.err, result


# What ended it -------------------------------------------------------------------------------------------------------------


def test_exit_statuses_of_other_programs(run, work):
    run("timeout", "0.2", "sleep", "20").ends(124, "its time was up, so timeout ended it")
    run("sh", "-c", "no-such-command").ends(127, "a program that it calls was not found")
    # Not so of the shell that a program starts.
    run(sys.executable, "-c", "import os; os.system('no-such-command'); raise SystemExit(3)").ends(3, "system_program_missing")
    (work / "plain").write_text("text")
    run("sh", "-c", "./plain").ends(126, "a program that it calls cannot be executed")
    run("env", "A=b", "no-such-command").ends(127, "a program that it calls was not found")
    run(sys.executable, "-c", "raise SystemExit(127)").ends(127, f"status 127; {NO_FAULT}")


def test_memory(run, work):
    """The kernel kills a process of another control group than scankit's, as that of a container or a job."""
    need_root("make a control group")
    roots = [root for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if (root / "cgroup.procs").exists()]
    group = roots[0] / f"scankit-test-{os.getpid()}" if roots else None
    limit = "memory.limit_in_bytes" if roots and roots[0].name == "memory" else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text("100M")
    except (AttributeError, OSError) as problem:
        if group and group.exists():
            group.rmdir()
        pytest.skip(f"no control group with a limit can be made: {problem}")
    try:
        eat = "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 20))"
        result = run("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$0" -c "$1"', sys.executable, eat)
    finally:
        group.rmdir()
    assert result.status == -signal.SIGKILL and "the kernel killed" in result.err and "because memory ran out" in result.err, result
    command = report()["command"]
    assert command["memory_kills"] + command["memory_kills_of_machine"] > 0 and command["signal_name"] == "SIGKILL", command


def test_processes_that_leave(run, work):
    """A daemon and its output; a command without standard input; one that replaces itself."""
    code = ("import os, time\nif os.fork(): os._exit(3)\nos.setsid()\nif os.fork(): os._exit(0)\n"
            "time.sleep(1)\nprint('late', flush=True)")
    result = run(sys.executable, "-c", code).ends(3, "late")
    run(sys.executable, "-c", "print(input())").ends(1, "EOFError")
    assert len(result.err.splitlines()) == 1, result
    run(sys.executable, "-c", "import os; os.execvp('sh', ['sh', '-c', 'exit 9'])").ends(9, NO_FAULT)


# Other places --------------------------------------------------------------------------------------------------------------


def test_engines_that_start_no_container(run, work):
    """A real client without a daemon, and one that is called wrongly: both say so themselves; 125 is explained."""
    found = [engine for engine in ("docker", "podman") if shutil.which(engine)]
    if not found:
        pytest.skip("neither docker nor podman found")
    words = {"docker": ["docker", "-H", f"unix://{work}/none.sock", "run", "--rm", "image", "true"], "podman": ["podman", "run", "--no-such"]}
    for engine in found:
        result = run(*words[engine]).ends(125, f"{engine} itself failed before it started the command in a container")
        assert NO_FAULT in result.err, result


def test_container_behind_helpers(run, work):
    """Only the output is examined, whatever starts the engine, and a line says how to examine the container."""
    fake = program(work / "docker", f"#!/bin/sh\necho '{UNDEFINED}' >&2\nexit 1\n")
    for words in ([fake, "run", "image"], ["timeout", "60", "env", "A=b", fake, "run", "image"]):
        result = run(*words).ends(1, "docker run [OPTIONS] IMAGE scankit run -- COMMAND")
        assert "torch_version_mismatch" in result.err and report()["python"] is None, result
    # Below a shell the engine is known from the processes: a program of that name, which is a shell.
    shutil.copy(os.path.realpath("/bin/sh"), fake)
    (work / "run").write_text(f"sleep 1\necho '{UNDEFINED}' >&2\nexit 1\n")
    result = run("sh", "-c", f"{fake} run; exit 1").ends(1, "only its output was examined")
    assert "docker" in report()["command"]["programs"], result
    program(fake, "#!/bin/sh\nexit $2\n")
    for status, text in ((126, "could not be started in the container"), (127, "the container has no such command"),
                         (137, "docker inspect shows which (OOMKilled)")):
        run(fake, "exec", status).ends(status, text)


@pytest.mark.ctest(labels="matrix;e2e;slurm", timeout=300)
def test_srun(scankit, broken, work):
    """A real Slurm: srun does not start the tasks itself, so the output is all there is; scankit behind srun sees the node."""
    (work / "train.py").write_text(IMPORT)
    (work / "kill.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    script = f"""
    . {REPOSITORY}/ci/fleet/tests/slurm.sh
    if why=$(slurm_missing); then echo "$why" && exit 77; fi
    cluster=$(mktemp -d /tmp/scankit-slurm.XXXXXX)
    trap 'slurm_down; rm -rf "$cluster"' EXIT
    slurm_up "$cluster" 2
    one() {{ name=$1; shift; "$@" >"$name" 2>&1 </dev/null && echo "status 0" >>"$name" || echo "status $?" >>"$name"; }}
    one import {scankit.path} run --no-import -- srun -n2 {broken.python} train.py
    one inside srun -n1 {scankit.path} run --no-import -- {broken.python} train.py
    one missing {scankit.path} run -- srun -n1 no-such-program
    one killed {scankit.path} run -- srun -n1 {broken.python} kill.py
    """
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, Result(["slurm"], done.returncode, done.stdout, done.stderr)
    said = {name: (work / name).read_text() for name in ("import", "inside", "missing", "killed")}
    assert "torch_version_mismatch" in said["import"] and "srun [OPTIONS] scankit run -- COMMAND" in said["import"], said["import"]
    assert "status 1" in said["import"] and "scankit fix --python" not in said["import"], said["import"]
    assert f"scankit fix --python {broken.python}" in said["inside"] and "status 1" in said["inside"], said["inside"]
    assert "the node cannot start no-such-program: No such file or directory" in said["missing"], said["missing"]
    assert "out-of-memory killer" in said["killed"] and "status 137" in said["killed"], said["killed"]
